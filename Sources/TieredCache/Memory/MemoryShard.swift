/// One part of a memory cache: all that one lock guards.
///
/// The lock lies before it in memory, see ``MemoryShardHead``, not in
/// it: taking the lock must not be an access to what another thread is changing.
///
/// Lives in memory of its own behind a pointer, not in an object: reading a field of an object that
/// other modules can see costs an exclusivity check, and holding one a reference count.
@usableFromInline
struct MemoryShard<Key: Hashable, Value>: ~Copyable {
    @usableFromInline typealias Removal = MemoryRemoval<Key, Value>

    @usableFromInline var index = MemoryIndex()
    @usableFromInline var entries: MemoryEntries<Key, Value>
    @usableFromInline var capacity: Int
    /// The last stamp given out.
    @usableFromInline var clock: UInt64 = 0
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    @usableFromInline var insertions = 0
    /// The first of the chain of free entry numbers below the extent, or -1.
    @usableFromInline var firstFree = -1
    /// The entry numbers ever used.
    @usableFromInline var extent = 0
    @usableFromInline var queue = MemoryQueue()
    /// Removals by the position of their cause in `RemovalCause.allCases`.
    @usableFromInline var removals: SIMD8<Int> = .zero

    @usableFromInline
    init(capacity: Int = 8) {
        self.capacity = capacity
        entries = MemoryEntries(capacity: capacity)
    }

    deinit {
        for entry in 0..<extent where entries.ledger(entry).pointee.isLive {
            _ = entries.takeValue(entry)
            _ = entries.takeKey(entry, isWanted: false)
        }
        entries.deallocate()
        index.deallocate()
        queue.deallocate()
    }

    /// The number of the entry under `key`, whose text has these bytes, or -1.
    @inlinable
    @inline(__always)
    func find(_ key: Key, bytes: UnsafeBufferPointer<UInt8>, tag: UInt32) -> Int {
        let entries = entries
        return index.find(tag: tag) { entries.has($0, key: key, bytes: bytes) }
    }

    /// Marks an entry as the most recently used: the whole of what a hit writes, but for a counter.
    ///
    /// The epoch is the cache's; it moves at each insertion and makes the stamps of different
    /// shards comparable.
    @inlinable
    @inline(__always)
    mutating func touch(_ entry: Int, epoch: UInt64) {
        clock = max(clock &+ 1, epoch)
        entries.ledger(entry).pointee.stamp = clock
    }

    /// Adds an entry, which must not be there yet, as the most recently used.
    @inlinable
    @inline(__always)
    mutating func add(
        _ value: Value,
        forKey key: Key,
        bytes: UnsafeBufferPointer<UInt8>,
        tag: UInt32,
        cost: Int,
        expiry: Int64,
        epoch: UInt64
    ) {
        let number = takeNumber()
        if queue.isFull { makeRoomInQueue() }
        clock = max(clock &+ 1, epoch)
        let ticket = queue.append(stamp: clock, entry: number)
        let ledger = MemoryLedger(
            stamp: clock,
            cost: cost,
            expiry: expiry,
            tag: tag,
            ticket: ticket
        )
        entries.initialize(number, key: key, bytes: bytes, value: value, ledger: ledger)
        index.insert(tag: tag, entry: number, hint: entries.hint(of: number))
        insertions &+= 1
    }

    /// Takes an entry out.
    ///
    /// - Parameters:
    ///   - entry: its number.
    ///   - cause: why.
    ///   - namesKey: whether the removal is to have the key.
    /// - Returns: what the caller releases outside the lock.
    @inlinable
    mutating func remove(_ entry: Int, cause: RemovalCause, namesKey: Bool) -> Removal {
        let ledger = entries.ledger(entry)
        index.remove(tag: ledger.pointee.tag, entry: entry)
        let cost = ledger.pointee.cost
        // With ticket 0: the record that stays in the queue is recognised by that.
        ledger.pointee = MemoryLedger(free: firstFree)
        firstFree = entry
        count(cause)
        return Removal(
            key: entries.takeKey(entry, isWanted: namesKey),
            value: entries.takeValue(entry),
            cost: cost,
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
        epoch: UInt64,
        namesKey: Bool
    ) -> Removal {
        let (ledger, old) = (entries.ledger(entry), entries.takeValue(entry))
        let removal = Removal(
            key: namesKey ? entries.key(entry) : nil,
            value: old,
            cost: ledger.pointee.cost,
            cause: .replaced
        )
        entries.value(entry).initialize(to: value)
        ledger.pointee.cost = cost
        ledger.pointee.expiry = expiry
        index.setHint(entries.hint(of: entry), tag: ledger.pointee.tag, entry: entry)
        touch(entry, epoch: epoch)
        insertions &+= 1
        count(.replaced)
        return removal
    }

    /// The least recently used entry, whose record stays the first of the queue; -1 from an empty
    /// shard.
    @inlinable
    @inline(__always)
    mutating func oldest() -> Int {
        while !queue.isHeapFirst, queue.first != queue.end {
            let record = queue.ring[queue.first & queue.mask]
            let ledger = entries.ledger(Int(record.entry))
            if ledger.pointee.ticket == record.ticket {
                guard ledger.pointee.stamp != record.stamp else { return Int(record.entry) }
                break
            }
            queue.first &+= 1
        }
        return oldestAfterHits()
    }

    /// The general case of ``oldest()``: records of entries that were hit since move to the heap.
    @usableFromInline
    @inline(never)
    mutating func oldestAfterHits() -> Int {
        while true {
            let isHeapFirst = queue.isHeapFirst
            guard isHeapFirst || queue.first != queue.end else { return -1 }
            let record = isHeapFirst ? queue.heap[0] : queue.ring[queue.first & queue.mask]
            let ledger = entries.ledger(Int(record.entry)).pointee
            let isLive = ledger.ticket == record.ticket
            if isLive, ledger.stamp == record.stamp { return Int(record.entry) }
            dropFirst(fromHeap: isHeapFirst)
            // The record of an entry that was removed is dropped when it comes up, not before.
            guard isLive else { continue }
            let entries = entries
            queue.push(
                MemoryQueue.Record(
                    stamp: ledger.stamp,
                    entry: record.entry,
                    ticket: record.ticket
                )
            ) { entries.ledger(Int($0.entry)).pointee.ticket == $0.ticket }
        }
    }

    /// Takes out the entry that ``oldest()`` returned.
    ///
    /// The one after it is known already: what its eviction will need begins to load.
    @inlinable
    @inline(__always)
    mutating func evict(_ oldest: Int, cause: RemovalCause, namesKey: Bool) -> Removal {
        dropFirst(fromHeap: queue.isHeapFirst)
        if queue.end &- queue.first > 1 { prefetchNext() }
        return remove(oldest, cause: cause, namesKey: namesKey)
    }

    @inlinable
    @inline(__always)
    func prefetchNext() {
        let afterNext = queue.ring[(queue.first &+ 1) & queue.mask]
        CacheLine.prefetchForWriting(
            UInt(bitPattern: entries.ledger(Int(afterNext.entry)))
        )
        // This line was fetched when its entry was the one after the next.
        let record = queue.ring[queue.first & queue.mask]
        let next = Int(record.entry)
        let tag = entries.ledger(next).pointee.tag
        CacheLine.prefetchForWriting(UInt(bitPattern: index.slots + (Int(tag) & index.mask)))
        // An entry that has left meanwhile has no value to look at.
        guard entries.ledger(next).pointee.ticket == record.ticket else { return }
        // The header of the object that will be released.
        CacheLine.prefetchForWriting(entries.hint(of: next))
    }

    @inlinable
    mutating func dropFirst(fromHeap: Bool) {
        if fromHeap { queue.popHeap() } else { queue.first &+= 1 }
    }

    @inlinable
    mutating func count(_ cause: RemovalCause) {
        removals[cause.position] &+= 1
    }

    @inlinable
    mutating func takeNumber() -> Int {
        if firstFree >= 0 {
            let number = firstFree
            firstFree = entries.ledger(number).pointee.cost
            return number
        }
        if extent == capacity { grow() }
        extent &+= 1
        return extent &- 1
    }

    /// Doubles the entries.
    ///
    /// All entry numbers are in use then: a free one would have been taken.
    @usableFromInline
    @inline(never)
    mutating func grow() {
        precondition(capacity < 1 << 31, "a shard holds at most 2^31 entries")
        entries.grow(from: capacity, to: capacity * 2)
        capacity *= 2
    }

    @usableFromInline
    @inline(never)
    mutating func makeRoomInQueue() {
        let entries = entries
        queue.makeRoom { entries.ledger(Int($0.entry)).pointee.ticket == $0.ticket }
    }
}
