public import Synchronization

/// A cache in memory: least recently used first, bounded by cost and count, safe from any thread.
///
/// - Bound: the sum of the costs is never above the limit when an insertion returns (while several
///   threads insert at once it may be, by the values they are inserting).
/// - Order: with one shard exactly least recently used first. With several, exactly so within a
///   shard; an insertion takes the oldest entry of its own shard, unless another shard has one that
///   is older by more insertions than a sixteenth of the entries. Entries of different shards that
///   were hit between the same two insertions count as hit at the same time.
/// - Expiry: an entry may have a time to live; it is noticed when the entry is looked up or
///   evicted, or by ``removeExpired()``. Hits on entries without one read no clock.
/// - Observer: called for every entry that leaves, outside all locks, on the thread that caused it.
///
/// Strings, and ``CacheKey``, are compared by their UTF-8 bytes as URLs are, not by Unicode's
/// canonical equivalence.
///
/// - Complexity: a lookup takes one lock and allocates nothing; an insertion that evicts does so in
///   constant time on average. Measured in `Benchmarks/`.
@_spi(Benchmarks)
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>
    @usableFromInline typealias Removal = MemoryRemoval<Key, Value>

    /// Called with the key, the value and the cause of each entry that has left.
    @usableFromInline
    package typealias RemovalObserver = @Sendable (Key, Value, RemovalCause) -> Void

    /// The limits given at creation.
    package let limits: MemoryLimits

    // Unsafe only to the compiler: the pointer never changes, and what a shard holds is touched
    // under the shard's lock alone.
    @usableFromInline nonisolated(unsafe) let shards: UnsafeMutableRawPointer
    @usableFromInline let shardMask: Int
    @usableFromInline let time: any TimeSource
    @usableFromInline let observer: RemovalObserver?
    @usableFromInline let maximumEntryCost: Int

    /// Grows by one unit with each insertion; shards count hits between two units, see `touch`.
    @usableFromInline let epoch = Atomic<UInt64>(1 << 20)
    /// A stamp that no entry of any shard is older than.
    @usableFromInline let floor = Atomic<UInt64>(0)
    @usableFromInline let cost = Atomic<Int>(0)
    @usableFromInline let count = Atomic<Int>(0)
    @usableFromInline let refusals = Atomic<Int>(0)
    /// The present limits, lower than the configured ones under pressure.
    @usableFromInline let costLimit: Atomic<Int>
    @usableFromInline let countLimit: Atomic<Int>

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - limits: how much it may hold.
    ///   - shards: how many locks share the keys; a power of two up to 256. One gives exact order,
    ///     more let threads work side by side.
    ///   - time: what expiry is measured by.
    ///   - onRemoval: called for every entry that leaves. It may call the cache.
    package init(
        limits: MemoryLimits,
        shards: Int = 8,
        time: any TimeSource = SystemTimeSource(),
        onRemoval: RemovalObserver? = nil
    ) {
        precondition(
            (1...256).contains(shards) && shards & (shards - 1) == 0,
            "the number of shards must be a power of two up to 256"
        )
        self.limits = limits
        self.shards = Self.allocateShards(shards)
        self.shardMask = shards - 1
        self.time = time
        self.observer = onRemoval
        self.maximumEntryCost = limits.maximumEntryCost
        self.costLimit = Atomic(limits.maximumCost)
        self.countLimit = Atomic(limits.maximumCount ?? .max)
    }

    /// Creates an empty cache of eight shards on the machine's clock, without an observer.
    public convenience init(limits: MemoryLimits) {
        self.init(limits: limits, time: SystemTimeSource())
    }

    deinit {
        for number in 0...shardMask {
            head(of: shard(number)).deinitialize(count: 1)
            shard(number).deinitialize(count: 1)
        }
        shards.deallocate()
    }

    /// The value under `key`, which becomes the most recently used; `nil` counts as a miss.
    @inlinable
    public func value(forKey key: Key) -> Value? {
        MemoryKey.withBytes(of: key) { value(forKey: key, $0) }
    }

    /// The lookup of a key whose text has these bytes.
    @inlinable
    @inline(never)
    func value(forKey key: Key, _ bytes: UnsafeBufferPointer<UInt8>) -> Value? {
        let hash = MemoryKey.hash(of: key, bytes)
        let tag = UInt32(truncatingIfNeeded: hash >> 32)
        let shard = shard(Int(truncatingIfNeeded: hash) & shardMask)
        head(of: shard).pointee.prefetchSlot(of: tag)
        lock(of: shard).pointee.lock()
        let found = shard.pointee.find(key, bytes: bytes, tag: tag)
        guard found >= 0 else {
            shard.pointee.misses &+= 1
            lock(of: shard).pointee.unlock()
            return nil
        }
        let expiry = shard.pointee.entries.ledger(found).pointee.expiry
        guard expiry == .max || !hasExpired(expiry) else {
            finishExpiredLookup(found, in: shard)
            return nil
        }
        // Counting the reference waits for all earlier writes, so the mark is written after it.
        let value = shard.pointee.entries.value(found).pointee
        shard.pointee.touch(found, epoch: epoch.load(ordering: .relaxed))
        if shard.pointee.clock & ((1 << 20) - 1) == 0 { advanceEpoch(to: shard.pointee.clock) }
        shard.pointee.hits &+= 1
        lock(of: shard).pointee.unlock()
        return value
    }

    /// Stores a value as the most recently used, in place of an older one under its key.
    ///
    /// - Parameters:
    ///   - value: the value to store.
    ///   - key: the key that identifies it.
    ///   - cost: the cost charged against the limit; a negative cost counts as zero.
    ///   - lifetime: how long it may be returned; `nil` for as long as there is room. A value with
    ///     a lifetime of 0 or less expires at once.
    /// - Returns: `false` if the value was refused because its cost is above the limit for one
    ///   value; an older one under the key is then removed all the same, for it is superseded.
    @inlinable
    @discardableResult
    public func insert(
        _ value: Value,
        forKey key: Key,
        cost: Int,
        expiresAfter lifetime: Duration? = nil
    ) -> Bool {
        let cost = max(0, cost)
        guard cost <= maximumEntryCost, cost <= costLimit.load(ordering: .relaxed) else {
            refuse(key)
            return false
        }
        let expiry = lifetime.map { time.monotonicTime().advanced(by: $0).nanoseconds } ?? .max
        MemoryKey.withBytes(of: key) {
            put(value, forKey: key, bytes: $0, cost: cost, expiry: expiry)
        }
        return true
    }

    /// Stores a value under a key whose text has these bytes.
    @inlinable
    @inline(never)
    func put(
        _ value: Value,
        forKey key: Key,
        bytes: UnsafeBufferPointer<UInt8>,
        cost: Int,
        expiry: Int64
    ) {
        let hash = MemoryKey.hash(of: key, bytes)
        let tag = UInt32(truncatingIfNeeded: hash >> 32)
        let shard = shard(Int(truncatingIfNeeded: hash) & shardMask)
        head(of: shard).pointee.prefetchSlot(of: tag)
        lock(of: shard).pointee.lock()
        let epoch = advanceEpoch(in: shard)
        let found = shard.pointee.find(key, bytes: bytes, tag: tag)
        guard found < 0 else {
            finishReplacement(
                of: found,
                in: shard,
                by: value,
                cost: cost,
                expiry: expiry,
                epoch: epoch
            )
            return
        }
        shard.pointee.add(
            value,
            forKey: key,
            bytes: bytes,
            tag: tag,
            cost: cost,
            expiry: expiry,
            epoch: epoch
        )
        head(of: shard).pointee.index.store(shard.pointee.index.hint, ordering: .relaxed)
        var growth = MemoryGrowth(cost: cost, count: 1)
        guard exceedsLimits(with: growth) else {
            noteOldest(of: shard)
            lock(of: shard).pointee.unlock()
            return charge(growth)
        }
        guard let removal = evictNearby(in: shard) else {
            noteOldest(of: shard)
            lock(of: shard).pointee.unlock()
            return evictToLimits(growth, cause: .size)
        }
        lock(of: shard).pointee.unlock()
        growth.subtract(removal)
        guard observer == nil, !exceedsLimits(with: growth) else {
            return evictToLimits(growth, after: removal, cause: .size)
        }
        charge(growth)
    }

    /// The stamp of an insertion: younger than all that other shards gave out before.
    ///
    /// Load and store, not one atomic step: two insertions at the same time may get the same, and
    /// one that was interrupted in between may set it back, until the next insertion into any shard
    /// that has seen the higher one.
    @inlinable
    @inline(__always)
    func advanceEpoch(in shard: UnsafeMutablePointer<Shard>) -> UInt64 {
        // Relaxed everywhere: a stamp orders evictions and guards nothing; the lock guards the
        // entries.
        let advanced = max(epoch.load(ordering: .relaxed), shard.pointee.clock) &+ 1 << 20
        epoch.store(advanced, ordering: .relaxed)
        return advanced
    }

    /// Ends an insertion that found an older value, and gives back the shard's lock.
    @usableFromInline
    @inline(never)
    func finishReplacement(
        of found: Int,
        in shard: UnsafeMutablePointer<Shard>,
        by value: Value,
        cost: Int,
        expiry: Int64,
        epoch: UInt64
    ) {
        let replaced = shard.pointee.replace(
            found,
            value: value,
            cost: cost,
            expiry: expiry,
            epoch: epoch,
            namesKey: observer != nil
        )
        lock(of: shard).pointee.unlock()
        notify(replaced)
        evictToLimits(MemoryGrowth(cost: cost &- replaced.cost, count: 0), cause: .size)
    }

    /// A million hits in a shard without an insertion anywhere: the epoch follows, so that what is
    /// inserted next is younger than all of them.
    @usableFromInline
    @inline(never)
    func advanceEpoch(to clock: UInt64) {
        epoch.max(clock, ordering: .relaxed)
    }

    @inlinable
    @inline(__always)
    func shard(_ number: Int) -> UnsafeMutablePointer<Shard> {
        // 512 bytes each, so that no two share a cache line or a pair of prefetched ones.
        (shards + (number &<< 9 &+ 32)).assumingMemoryBound(to: Shard.self)
    }

    @inlinable
    @inline(__always)
    func head(of shard: UnsafeMutablePointer<Shard>) -> UnsafeMutablePointer<MemoryShardHead> {
        (UnsafeMutableRawPointer(shard) - 32).assumingMemoryBound(to: MemoryShardHead.self)
    }

    @inlinable
    @inline(__always)
    func lock(of shard: UnsafeMutablePointer<Shard>) -> UnsafePointer<MemoryLock> {
        // The first property.
        UnsafeRawPointer(head(of: shard)).assumingMemoryBound(to: MemoryLock.self)
    }

    private static func allocateShards(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(MemoryLayout<Shard>.size <= 512 - 32)
        precondition(MemoryLayout<MemoryShardHead>.size <= 32)
        // 128: x86 loads lines of 64 bytes in pairs, ARM servers have lines of 128.
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count << 9, alignment: 128)
        for number in 0..<count {
            let place = memory + number << 9
            place.initializeMemory(as: MemoryShardHead.self, to: MemoryShardHead())
            (place + 32).initializeMemory(as: Shard.self, to: Shard())
        }
        return memory
    }
}
