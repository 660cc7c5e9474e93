public import Synchronization

extension MemoryCache {
    /// Sets the limits to a part of the configured ones and evicts down to them.
    ///
    /// What memory pressure does; see ``MemoryPressureMonitor``. Takes effect before it returns.
    ///
    /// - Parameter fraction: from 0 to 1; what lies outside is clamped. With 1 the configured
    ///   limits hold again.
    public func limit(toFraction fraction: Double) {
        let fraction = min(1, max(0, fraction))
        costLimit.store(scaled(limits.maximumCost, by: fraction), ordering: .relaxed)
        if let maximumCount = limits.maximumCount {
            countLimit.store(scaled(maximumCount, by: fraction), ordering: .relaxed)
        }
        settle(MemoryGrowth(cost: 0, count: 0), cause: .pressure)
    }

    private func scaled(_ limit: Int, by fraction: Double) -> Int {
        fraction == 1 ? limit : Int(Double(limit) * fraction)
    }

    /// Books what the cache has grown by, once it is within the limits: evicts, oldest first, as
    /// long as it would not be.
    @inlinable
    func settle(_ growth: MemoryGrowth, cause: RemovalCause) {
        var growth = growth
        while exceedsLimits(with: growth), let removal = evictOldest(cause: cause) {
            growth.subtract(removal)
            guard let observer else { continue }
            // Whoever is told may ask for the sums, or insert.
            book(growth)
            growth = MemoryGrowth(cost: 0, count: 0)
            observer(removal.key, removal.value, removal.cause)
        }
        book(growth)
    }

    @inlinable
    @inline(__always)
    func exceedsLimits(with growth: MemoryGrowth) -> Bool {
        cost.load(ordering: .relaxed) &+ growth.cost > costLimit.load(ordering: .relaxed)
            || count.load(ordering: .relaxed) &+ growth.count > countLimit.load(ordering: .relaxed)
    }

    /// Adds to the sums.
    @inlinable
    @inline(__always)
    func book(_ growth: MemoryGrowth) {
        if growth.cost != 0 { cost.wrappingAdd(growth.cost, ordering: .relaxed) }
        if growth.count != 0 { count.wrappingAdd(growth.count, ordering: .relaxed) }
    }

    /// Takes the least recently used entry of all shards, or `nil` from an empty cache.
    ///
    /// Each shard has a hint, a stamp that none of its entries is older than. The shard with the
    /// lowest hint is asked for its oldest entry; if the entries of no other shard can be older,
    /// that is the victim, else the hint is corrected and the search goes on.
    @inlinable
    func evictOldest(cause: RemovalCause) -> Removal? {
        while true {
            let (lowest, next) = lowestHints()
            guard hints[lowest].load(ordering: .relaxed) != .max else { return nil }
            let shard = shard(lowest)
            lock(of: shard).pointee.lock()
            defer { lock(of: shard).pointee.unlock() }
            guard let victim = shard.pointee.oldest() else {
                hints[lowest].store(.max, ordering: .relaxed)
                continue
            }
            guard isOlder(victim.stamp, lowest, than: next) else {
                hints[lowest].store(victim.stamp, ordering: .relaxed)
                continue
            }
            let isExpired = hasExpired(shard.pointee.entries[victim.entry].expiry)
            let removal = shard.pointee.remove(
                victim.entry,
                cause: isExpired ? .expired : cause
            )
            hints[lowest].store(shard.pointee.victims.takeFirst(), ordering: .relaxed)
            return removal
        }
    }

    /// The number of the shard with the lowest hint, and that of the one after it (itself if there
    /// is only one shard); of equal hints the first.
    @inlinable
    func lowestHints() -> (lowest: Int, next: Int) {
        var lowest = (number: 0, stamp: UInt64.max)
        var next = (number: 0, stamp: UInt64.max)
        for number in 0...shardMask {
            let stamp = hints[number].load(ordering: .relaxed)
            if stamp < lowest.stamp {
                next = lowest
                lowest = (number, stamp)
            } else if stamp < next.stamp {
                next = (number, stamp)
            }
        }
        return (lowest.number, next.stamp == .max ? lowest.number : next.number)
    }

    /// Whether an entry of shard `number` with `stamp` is older than any that shard `other` can
    /// hold; shards break ties by their numbers.
    @inlinable
    func isOlder(_ stamp: UInt64, _ number: Int, than other: Int) -> Bool {
        guard other != number else { return true }
        let bound = hints[other].load(ordering: .relaxed)
        return stamp < bound || stamp == bound && number < other
    }
}
