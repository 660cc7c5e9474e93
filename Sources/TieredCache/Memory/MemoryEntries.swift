/// What a shard notes about an entry; also about a number that has none.
@usableFromInline
struct MemoryLedger {
    /// When the entry was used last.
    @usableFromInline var stamp: UInt64
    /// The entry's cost; the number of the next free entry where there is none.
    @usableFromInline var cost: Int
    /// Nanoseconds of the time source; `Int64.max` where the entry does not expire.
    @usableFromInline var expiry: Int64
    @usableFromInline var tag: UInt32
    /// The ticket of the entry's record in the queue; 0 where there is no entry.
    @usableFromInline var ticket: UInt32

    @inlinable
    init(stamp: UInt64, cost: Int, expiry: Int64, tag: UInt32, ticket: UInt32) {
        self.stamp = stamp
        self.cost = cost
        self.expiry = expiry
        self.tag = tag
        self.ticket = ticket
    }

    /// The ledger of a number that no entry has.
    @inlinable
    init(free next: Int) {
        self.init(stamp: 0, cost: next, expiry: .max, tag: 0, ticket: 0)
    }

    @inlinable var isLive: Bool { ticket != 0 }
}

/// An array of entries: for each number a ledger, always initialized, and a value and a key if it
/// is live.
///
/// All three lie side by side. A key that is text of up to ``inlineCapacity`` bytes is kept as a
/// copy of its bytes, not as a `String`: a lookup then compares without a further memory access,
/// and neither insertion nor eviction counts a reference to a string. The ledger, a value that is
/// an object, and a key of 80 bytes (most URLs) fill exactly the two lines that a processor loads
/// together.
@usableFromInline
struct MemoryEntries<Key: Hashable, Value> {
    @usableFromInline typealias KeyKind = MemoryKey<Key>

    @usableFromInline var base: UnsafeMutableRawPointer

    @usableFromInline
    init(capacity: Int) {
        base = .allocate(byteCount: capacity * Self.stride, alignment: Self.alignment)
        // All of them: the queue also reads ledgers of entries that have gone.
        for number in 0..<capacity { ledger(number).initialize(to: MemoryLedger(free: -1)) }
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
    func value(_ number: Int) -> UnsafeMutablePointer<Value> {
        (base + (number &* Self.stride &+ Self.valueOffset)).assumingMemoryBound(to: Value.self)
    }

    /// What the value begins with, as an address for the processor to load early; any number where
    /// it does not begin with a pointer.
    @inlinable
    @inline(__always)
    func hint(of number: Int) -> UInt {
        guard MemoryLayout<Value>.size >= MemoryLayout<UInt>.size else { return 0 }
        return UnsafeRawPointer(value(number)).loadUnaligned(as: UInt.self)
    }

    /// Makes an entry of a number that has none.
    @inlinable
    @inline(__always)
    func initialize(
        _ number: Int,
        key: Key,
        bytes: UnsafeBufferPointer<UInt8>,
        value: Value,
        ledger: MemoryLedger
    ) {
        self.ledger(number).pointee = ledger
        self.value(number).initialize(to: value)
        setKey(of: number, to: key, bytes: bytes)
    }

    /// Ends an entry, but for its ledger; its value is to be released outside the lock.
    @inlinable
    @inline(__always)
    func takeValue(_ number: Int) -> Value { value(number).move() }

    /// Moves all entries, which must be live, to a larger array.
    mutating func grow(from capacity: Int, to larger: Int) {
        let old = self
        self = MemoryEntries(capacity: larger)
        for number in 0..<capacity {
            ledger(number).pointee = old.ledger(number).pointee
            value(number).moveInitialize(from: old.value(number), count: 1)
            moveKey(number, from: old)
        }
        old.deallocate()
    }
}

/// An entry that has left: the observer learns of it, and its value is released, outside the lock.
///
/// Not copyable, because each copy would count references to the key and the value.
@usableFromInline
struct MemoryRemoval<Key, Value>: ~Copyable {
    /// The key, where an observer wants to know it, or it has to be released.
    @usableFromInline let key: Key?
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    @usableFromInline let cause: RemovalCause

    @inlinable
    @inline(__always)
    init(key: consuming Key?, value: consuming Value, cost: Int, cause: RemovalCause) {
        self.key = key
        self.value = value
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
