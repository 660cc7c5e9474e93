public import CLinuxCalls

/// One part of a memory cache: all that one lock guards.
///
/// The lock lies before it in memory, not in
/// it: taking the lock must not be an access to what another thread is changing.
///
/// Lives in memory of its own behind a pointer, not in an object: reading a field of an object that
/// other modules can see costs an exclusivity check, and holding one a reference count.
@usableFromInline
struct MemoryShard<Key: Hashable, Value>: ~Copyable {
    /// What a lookup reads; half a cache line for a string and an object.
    @usableFromInline
    struct Entry {
        @usableFromInline let key: Key
        @usableFromInline var value: Value
        /// Nanoseconds of the time source; `Int64.max` where the entry does not expire.
        @usableFromInline var expiry: Int64

        @inlinable
        init(key: Key, value: Value, expiry: Int64) {
            self.key = key
            self.value = value
            self.expiry = expiry
        }
    }

    /// What only insertion and removal read.
    @usableFromInline
    struct Ledger {
        /// The entry's cost; the number of the next free entry where there is none.
        @usableFromInline var cost: Int
        @usableFromInline var tag: UInt32

        @inlinable
        init(cost: Int, tag: UInt32) {
            self.cost = cost
            self.tag = tag
        }
    }

    @usableFromInline var index = MemoryIndex()
    /// Three arrays with one element per entry number; only entries with a stamp are initialized.
    @usableFromInline var entries: UnsafeMutablePointer<Entry>
    @usableFromInline var stamps: UnsafeMutablePointer<UInt64>
    @usableFromInline var ledgers: UnsafeMutablePointer<Ledger>
    @usableFromInline var capacity: Int
    /// The entry numbers ever used.
    @usableFromInline var extent = 0
    /// The first of the chain of free entry numbers below the extent, or -1.
    @usableFromInline var firstFree = -1
    /// The last stamp given out.
    @usableFromInline var clock: UInt64 = 0
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    @usableFromInline var insertions = 0
    @usableFromInline var victims = MemoryVictims()
    /// Removals by the position of their cause in `RemovalCause.allCases`.
    @usableFromInline var removals: SIMD8<Int> = .zero

    @usableFromInline
    init(capacity: Int = 8) {
        self.capacity = capacity
        entries = .allocate(capacity: capacity)
        stamps = .allocate(capacity: capacity)
        ledgers = .allocate(capacity: capacity)
        stamps.initialize(repeating: 0, count: capacity)
    }

    deinit {
        for entry in 0..<extent where stamps[entry] != 0 {
            (entries + entry).deinitialize(count: 1)
        }
        entries.deallocate()
        stamps.deallocate()
        ledgers.deallocate()
        index.deallocate()
        victims.deallocate()
    }

    /// The number of the entry under `key`, or -1.
    @inlinable
    @inline(__always)
    func find(_ key: Key, tag: UInt32) -> Int {
        let (entries, stamps) = (entries, stamps)
        return index.find(tag: tag) { number in
            // What a hit writes begins to load while the keys are compared.
            tc_prefetch_for_writing(UInt(bitPattern: stamps + number))
            prefetchObject(entries + number)
            return MemoryKey.areEqual(entries[number].key, key)
        }
    }

    /// Starts loading what the value points to, because a hit will count a reference to it.
    ///
    /// Where the value does not begin with a pointer this does nothing.
    @inlinable
    @inline(__always)
    func prefetchObject(_ entry: UnsafeMutablePointer<Entry>) {
        guard MemoryLayout<Value>.size >= MemoryLayout<UInt>.size else { return }
        withUnsafePointer(to: &entry.pointee.value) { value in
            tc_prefetch_for_writing(UnsafeRawPointer(value).load(as: UInt.self))
        }
    }

    /// Marks an entry as the most recently used: the whole of what a hit writes, but for a counter.
    ///
    /// The epoch is the cache's; it moves at each insertion and makes the stamps of different
    /// shards comparable.
    @inlinable
    @inline(__always)
    mutating func touch(_ entry: Int, epoch: UInt64) {
        clock = max(clock &+ 1, epoch)
        stamps[entry] = clock
    }

    /// Adds an entry, which must not be there yet, as the most recently used.
    @inlinable
    mutating func add(_ entry: consuming Entry, tag: UInt32, cost: Int, epoch: UInt64) {
        let number = takeNumber()
        (entries + number).initialize(to: entry)
        ledgers[number] = Ledger(cost: cost, tag: tag)
        touch(number, epoch: epoch)
        let keyAddress = MemoryKey.address(of: entries[number].key)
        index.insert(tag: tag, entry: number, keyAddress: keyAddress)
        insertions &+= 1
    }

    /// Takes an entry out.
    @inlinable
    mutating func remove(_ entry: Int, cause: RemovalCause) -> MemoryRemoval<Key, Value> {
        let ledger = ledgers[entry]
        index.remove(tag: ledger.tag, entry: entry)
        let removed = (entries + entry).move()
        stamps[entry] = 0
        ledgers[entry].cost = firstFree
        firstFree = entry
        count(cause)
        return MemoryRemoval(
            key: removed.key,
            value: removed.value,
            cost: ledger.cost,
            cause: cause
        )
    }

    /// Exchanges an entry's value; the entry becomes the most recently used.
    @inlinable
    mutating func replace(
        _ entry: Int,
        value: consuming Value,
        cost: Int,
        expiry: Int64,
        epoch: UInt64
    ) -> MemoryRemoval<Key, Value> {
        let key = entries[entry].key
        let old = exchange(&entries[entry].value, with: value)
        let oldCost = exchange(&ledgers[entry].cost, with: cost)
        entries[entry].expiry = expiry
        touch(entry, epoch: epoch)
        insertions &+= 1
        count(.replaced)
        return MemoryRemoval(key: key, value: old, cost: oldCost, cause: .replaced)
    }

    /// The least recently used entry, or `nil` if the shard is empty.
    @inlinable
    mutating func oldest() -> MemoryVictims.Victim? {
        victims.oldest(in: UnsafeBufferPointer(start: stamps, count: extent))
    }

    @inlinable
    mutating func count(_ cause: RemovalCause) {
        removals[cause.position] &+= 1
    }

    @inlinable
    mutating func takeNumber() -> Int {
        if firstFree >= 0 {
            let number = firstFree
            firstFree = ledgers[number].cost
            return number
        }
        if extent == capacity { grow() }
        extent += 1
        return extent - 1
    }

    /// Doubles the arrays.
    ///
    /// All entry numbers are in use then: a free one would have been taken.
    @usableFromInline
    @inline(never)
    mutating func grow() {
        precondition(capacity < 1 << 31, "a shard holds at most 2^31 entries")
        entries = Self.move(entries, count: capacity, to: capacity * 2)
        ledgers = Self.move(ledgers, count: capacity, to: capacity * 2)
        stamps = Self.move(stamps, count: capacity, to: capacity * 2)
        (stamps + capacity).initialize(repeating: 0, count: capacity)
        capacity *= 2
    }

    private static func move<Element>(
        _ old: UnsafeMutablePointer<Element>,
        count: Int,
        to capacity: Int
    ) -> UnsafeMutablePointer<Element> {
        let new = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        new.moveInitialize(from: old, count: count)
        old.deallocate()
        return new
    }
}

/// An entry that has left: the observer learns of it, and its value is released, outside the lock.
@usableFromInline
struct MemoryRemoval<Key, Value> {
    @usableFromInline let key: Key
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    @usableFromInline let cause: RemovalCause

    @inlinable
    init(key: Key, value: Value, cost: Int, cause: RemovalCause) {
        self.key = key
        self.value = value
        self.cost = cost
        self.cause = cause
    }
}

extension RemovalCause {
    @usableFromInline var position: Int {
        switch self {
        case .expired: 0
        case .explicit: 1
        case .replaced: 2
        case .size: 3
        case .pressure: 4
        }
    }
}

@inlinable
func exchange<Value>(_ place: inout Value, with new: consuming Value) -> Value {
    let old = place
    place = new
    return old
}
