/// What a cache keeps for its user.
@usableFromInline
struct MemoryContent<Key, Value> {
    @usableFromInline let key: Key
    @usableFromInline var value: Value
    /// Nanoseconds of the time source; `Int64.max` where the entry does not expire.
    @usableFromInline var expiry: Int64

    @inlinable
    @inline(__always)
    init(key: Key, value: consuming Value, expiry: Int64) {
        self.key = key
        self.value = value
        self.expiry = expiry
    }
}

/// What a shard notes about an entry; also about a number that has none.
@usableFromInline
struct MemoryLedger {
    /// When the entry was used last.
    @usableFromInline var stamp: UInt64
    /// The entry's cost; the number of the next free entry where there is none.
    @usableFromInline var cost: Int
    @usableFromInline var tag: UInt32
    /// The ticket of the entry's record in the queue; 0 where there is no entry.
    @usableFromInline var ticket: UInt32

    @inlinable
    init(stamp: UInt64, cost: Int, tag: UInt32, ticket: UInt32) {
        self.stamp = stamp
        self.cost = cost
        self.tag = tag
        self.ticket = ticket
    }

    /// The ledger of a number that no entry has.
    @inlinable
    init(free next: Int) {
        self.init(stamp: 0, cost: next, tag: 0, ticket: 0)
    }

    @inlinable var isLive: Bool { ticket != 0 }
}

/// An array of entries: for each number a ledger, always initialized, and a content if it is live.
///
/// Both lie side by side, and an entry of a `String` or ``CacheKey`` and an object fills exactly
/// one cache line: what a hit, an insertion or an eviction touches of an entry is one line.
@usableFromInline
struct MemoryEntries<Key: Hashable, Value> {
    @usableFromInline typealias Content = MemoryContent<Key, Value>

    @usableFromInline var base: UnsafeMutableRawPointer

    @inlinable static var contentOffset: Int {
        let alignment = MemoryLayout<Content>.alignment
        return (MemoryLayout<MemoryLedger>.size + alignment - 1) / alignment * alignment
    }

    @inlinable static var stride: Int {
        let alignment = max(8, MemoryLayout<Content>.alignment)
        let size = contentOffset + MemoryLayout<Content>.size
        return size <= 64 ? 64 : (size + alignment - 1) / alignment * alignment
    }

    @usableFromInline
    init(capacity: Int) {
        base = .allocate(
            byteCount: capacity * Self.stride,
            alignment: max(64, MemoryLayout<Content>.alignment)
        )
        clear(0..<capacity)
    }

    /// Gives the memory back; no entry may be live.
    func deallocate() {
        base.deallocate()
    }

    @inlinable
    @inline(__always)
    func ledger(_ number: Int) -> UnsafeMutablePointer<MemoryLedger> {
        (base + number &* Self.stride).assumingMemoryBound(to: MemoryLedger.self)
    }

    @inlinable
    @inline(__always)
    func content(_ number: Int) -> UnsafeMutablePointer<Content> {
        (base + (number &* Self.stride &+ Self.contentOffset))
            .assumingMemoryBound(to: Content.self)
    }

    /// The addresses of what an entry's key and value point to; any number where they do not begin
    /// with a pointer.
    @inlinable
    @inline(__always)
    func hints(of number: Int) -> MemoryIndex.Hints {
        let content = content(number)
        let key = MemoryKey.address(of: content.pointee.key)
        guard MemoryLayout<Value>.size >= MemoryLayout<UInt>.size else {
            return MemoryIndex.Hints(key: key, value: 0)
        }
        let value = withUnsafePointer(to: &content.pointee.value) { value in
            UnsafeRawPointer(value).loadUnaligned(as: UInt.self)
        }
        return MemoryIndex.Hints(key: key, value: value)
    }

    /// Moves all entries, which must be live, to a larger array.
    mutating func grow(from capacity: Int, to larger: Int) {
        let old = self
        self = MemoryEntries(capacity: larger)
        for number in 0..<capacity {
            ledger(number).pointee = old.ledger(number).pointee
            content(number).moveInitialize(from: old.content(number), count: 1)
        }
        old.deallocate()
    }

    private func clear(_ numbers: Range<Int>) {
        for number in numbers { ledger(number).initialize(to: MemoryLedger(free: -1)) }
    }
}

/// An entry that has left: the observer learns of it, and its value is released, outside the lock.
///
/// Not copyable, because each copy would count references to the key and the value.
@usableFromInline
struct MemoryRemoval<Key, Value>: ~Copyable {
    @usableFromInline let content: MemoryContent<Key, Value>
    @usableFromInline let cost: Int
    @usableFromInline let cause: RemovalCause

    @inlinable
    @inline(__always)
    init(content: consuming MemoryContent<Key, Value>, cost: Int, cause: RemovalCause) {
        self.content = content
        self.cost = cost
        self.cause = cause
    }
}

extension RemovalCause {
    @inlinable var position: Int {
        switch self {
        case .expired: 0
        case .explicit: 1
        case .replaced: 2
        case .size: 3
        case .pressure: 4
        }
    }
}
