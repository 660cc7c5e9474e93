public import Synchronization

/// A cache in memory: least recently used first, bounded by cost and count, safe from any thread.
///
/// - Bound: the sum of the costs is never above the limit when an insertion returns (while several
///   threads insert at once it may be, by the values they are inserting).
/// - Order: with one shard exactly least recently used first. With several, exactly so within a
///   shard and, between shards, in the order of the insertions: entries of different shards that
///   were hit between the same two insertions count as hit at the same time.
/// - Expiry: an entry may have a time to live; it is noticed when the entry is looked up or
///   evicted, or by ``removeExpired()``. Hits on entries without one read no clock.
/// - Observer: told of every entry that leaves, outside all locks, on the thread that caused it.
///
/// Strings, and ``CacheKey``, are compared by their UTF-8 bytes as URLs are, not by Unicode's
/// canonical equivalence.
///
/// - Complexity: a lookup takes one lock and allocates nothing; an insertion that evicts does so in
///   constant time on average. Measured in `Benchmarks/`.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>
    @usableFromInline typealias Removal = MemoryRemoval<Key, Value>

    /// Told of the key, the value and the cause whenever an entry has left.
    public typealias RemovalObserver = @Sendable (Key, Value, RemovalCause) -> Void

    /// The limits given at creation.
    public let limits: MemoryLimits

    // Unsafe only to the compiler: the pointer never changes, and what a shard holds is touched
    // under the shard's lock alone.
    @usableFromInline nonisolated(unsafe) let shards: UnsafeMutableRawPointer
    @usableFromInline let shardMask: Int
    /// For each shard a stamp that none of its entries is older than; `.max` for an empty shard.
    @usableFromInline nonisolated(unsafe) let hints: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline let time: any TimeSource
    @usableFromInline let observer: RemovalObserver?
    @usableFromInline let maximumEntryCost: Int

    /// Grows by one unit with each insertion; shards count hits between two units, see `touch`.
    @usableFromInline let epoch = Atomic<UInt64>(1 << 20)
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
    ///   - onRemoval: told of every entry that leaves. It may call the cache.
    public init(
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
        self.hints = .allocate(capacity: shards)
        for number in 0..<shards { (hints + number).initialize(to: Atomic(.max)) }
        self.time = time
        self.observer = onRemoval
        self.maximumEntryCost = limits.maximumEntryCost
        self.costLimit = Atomic(limits.maximumCost)
        self.countLimit = Atomic(limits.maximumCount ?? .max)
    }

    deinit {
        for number in 0...shardMask {
            lock(of: shard(number)).deinitialize(count: 1)
            shard(number).deinitialize(count: 1)
        }
        shards.deallocate()
        hints.deinitialize(count: shardMask + 1)
        hints.deallocate()
    }

    /// The value under `key`, which becomes the most recently used; `nil` counts as a miss.
    @inlinable
    public func value(forKey key: Key) -> Value? {
        let hash = MemoryKey.hash(of: key)
        let shard = shard(Int(truncatingIfNeeded: hash) & shardMask)
        lock(of: shard).pointee.lock()
        let found = shard.pointee.find(key, tag: UInt32(truncatingIfNeeded: hash >> 32))
        guard found >= 0 else {
            shard.pointee.misses &+= 1
            lock(of: shard).pointee.unlock()
            return nil
        }
        let entry = shard.pointee.entries + found
        guard entry.pointee.expiry == .max || !hasExpired(entry.pointee.expiry) else {
            finishExpiredLookup(found, in: shard)
            return nil
        }
        // Counting the reference waits for all earlier writes, so the mark is written after it.
        let value = entry.pointee.value
        shard.pointee.touch(found, epoch: epoch.load(ordering: .relaxed))
        if shard.pointee.clock & ((1 << 20) - 1) == 0 { advanceEpoch(to: shard.pointee.clock) }
        shard.pointee.hits &+= 1
        lock(of: shard).pointee.unlock()
        return value
    }

    /// Stores a value as the most recently used, in place of an older one under its key.
    ///
    /// - Parameters:
    ///   - value: what to keep.
    ///   - key: what to find it under.
    ///   - cost: what it counts against the limit; a negative cost counts as zero.
    ///   - lifetime: how long it may be returned; `nil` for as long as there is room. What is not
    ///     positive has expired at once.
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
        let growth = put(value, forKey: key, cost: cost, expiry: expiry)
        settle(growth, cause: .size)
        return true
    }

    /// Stores a value; what the cache grows by is not yet on the account.
    @inlinable
    func put(_ value: Value, forKey key: Key, cost: Int, expiry: Int64) -> MemoryGrowth {
        let hash = MemoryKey.hash(of: key)
        let tag = UInt32(truncatingIfNeeded: hash >> 32)
        let number = Int(truncatingIfNeeded: hash) & shardMask
        let shard = shard(number)
        let epoch = epoch.wrappingAdd(1 << 20, ordering: .relaxed).newValue
        lock(of: shard).pointee.lock()
        let found = shard.pointee.find(key, tag: tag)
        var replaced: Removal?
        if found >= 0 {
            replaced = shard.pointee.replace(
                found,
                value: value,
                cost: cost,
                expiry: expiry,
                epoch: epoch
            )
        } else {
            let entry = Shard.Entry(key: key, value: value, expiry: expiry)
            shard.pointee.add(entry, tag: tag, cost: cost, epoch: epoch)
            // Only an empty shard has no hint; any other's holds for a newer entry too.
            if hints[number].load(ordering: .relaxed) == .max {
                hints[number].store(shard.pointee.clock, ordering: .relaxed)
            }
        }
        lock(of: shard).pointee.unlock()
        guard let replaced else { return MemoryGrowth(cost: cost, count: 1) }
        notify(replaced)
        return MemoryGrowth(cost: cost - replaced.cost, count: 0)
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
        (shards + (number &<< 9 &+ 16)).assumingMemoryBound(to: Shard.self)
    }

    @inlinable
    @inline(__always)
    func lock(of shard: UnsafeMutablePointer<Shard>) -> UnsafeMutablePointer<MemoryLock> {
        (UnsafeMutableRawPointer(shard) - 16).assumingMemoryBound(to: MemoryLock.self)
    }

    private static func allocateShards(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(MemoryLayout<Shard>.size <= 512 - 16)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count << 9, alignment: 128)
        for number in 0..<count {
            let place = memory + number << 9
            place.initializeMemory(as: MemoryLock.self, to: MemoryLock())
            (place + 16).initializeMemory(as: Shard.self, to: Shard())
        }
        return memory
    }
}
