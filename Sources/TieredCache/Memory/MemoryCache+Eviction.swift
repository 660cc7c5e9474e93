public import Synchronization

extension MemoryCache {
    /// Sets the limits to a part of the configured ones and evicts down to them.
    ///
    /// ``MemoryPressureMonitor`` calls it under memory pressure. Takes effect before it returns.
    ///
    /// - Parameter fraction: from 0 to 1; what lies outside is clamped. With 1 the configured
    ///   limits hold again.
    package func limit(toFraction fraction: Double) {
        let fraction = min(1, max(0, fraction))
        costLimit.store(scaled(limits.maximumCost, by: fraction), ordering: .relaxed)
        if let maximumCount = limits.maximumCount {
            countLimit.store(scaled(maximumCount, by: fraction), ordering: .relaxed)
        }
        evictToLimits(MemoryGrowth(cost: 0, count: 0), cause: .pressure)
    }

    private func scaled(_ limit: Int, by fraction: Double) -> Int {
        fraction == 1 ? limit : Int(Double(limit) * fraction)
    }

    /// Adds a growth to the sums, and evicts, oldest first, until the sums are within the limits.
    ///
    /// - Parameters:
    ///   - growth: by how much the shards have grown.
    ///   - removal: what has been evicted already, which `growth` accounts for.
    ///   - cause: the cause that the observer gets.
    @usableFromInline
    @inline(never)
    func evictToLimits(
        _ growth: MemoryGrowth,
        after removal: consuming Removal? = nil,
        cause: RemovalCause
    ) {
        var growth = growth
        if let removal { growth = tell(removal, after: growth) }
        while exceedsLimits(with: growth), let removal = evictOldest(cause: cause) {
            growth.subtract(removal)
            growth = tell(removal, after: growth)
        }
        charge(growth)
    }

    /// Calls the observer, if there is one, after the sums are updated: it may read the sums, or
    /// insert.
    private func tell(_ removal: consuming Removal, after growth: MemoryGrowth) -> MemoryGrowth {
        guard observer != nil else { return growth }
        charge(growth)
        notify(removal)
        return MemoryGrowth(cost: 0, count: 0)
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
    func charge(_ growth: MemoryGrowth) {
        if growth.cost != 0 { cost.wrappingAdd(growth.cost, ordering: .relaxed) }
        if growth.count != 0 { count.wrappingAdd(growth.count, ordering: .relaxed) }
    }

    /// Makes room for the newest entry of a shard whose lock the caller holds by taking the shard's
    /// oldest, if that is as good as the oldest of all; `nil` if it is not.
    ///
    /// One lock instead of two. As good means: younger by at most as many insertions as a sixteenth
    /// of the entries. Keys spread over shards evenly, so that the oldest of eight shards are
    /// usually about eight insertions apart; a shard that happens to hold few entries, or large
    /// ones, evicts nothing until its turn has come.
    @inlinable
    @inline(__always)
    func evictNearby(in shard: UnsafeMutablePointer<Shard>) -> Removal? {
        let oldest = shard.pointee.oldest()
        let ledger = shard.pointee.entries.ledger(oldest)
        let stamp = ledger.pointee.stamp
        // Stamps count insertions in their upper bits, hits in the lower 20.
        let slack = UInt64(truncatingIfNeeded: max(0, count.load(ordering: .relaxed)) / 16) << 20
        guard stamp < shard.pointee.clock,
            stamp <= floor.load(ordering: .relaxed) &+ slack || stamp <= raiseFloor() &+ slack
        else { return nil }
        let expiry = ledger.pointee.expiry
        let removal = shard.pointee.evict(
            oldest,
            cause: expiry != .max && hasExpired(expiry) ? .expired : .size,
            namesKey: observer != nil
        )
        head(of: shard).pointee.oldest.store(shard.pointee.queue.lowestStamp, ordering: .relaxed)
        return removal
    }

    /// Writes down a lower bound of the stamps of all entries, and returns it.
    ///
    /// It holds until the next time: stamps only grow, and an entry that is added is the youngest.
    @usableFromInline
    @inline(never)
    func raiseFloor() -> UInt64 {
        let lowest = lowestShards().stamp
        // Only insertions ask, and theirs is not charged before the shard's bound is.
        guard lowest != .max else { return 0 }
        floor.store(lowest, ordering: .relaxed)
        return lowest
    }

    /// After an insertion: an empty shard had no bound; any other's holds for a newer entry too.
    @inlinable
    @inline(__always)
    func noteOldest(of shard: UnsafeMutablePointer<Shard>) {
        let head = head(of: shard)
        guard head.pointee.oldest.load(ordering: .relaxed) == .max else { return }
        head.pointee.oldest.store(shard.pointee.clock, ordering: .relaxed)
    }

    /// Takes the least recently used entry of all shards, or `nil` from an empty cache.
    ///
    /// Each shard has a bound, a stamp that none of its entries is older than. The shard with the
    /// lowest is asked for its oldest entry; if the entries of no other shard can be older, that is
    /// the victim, else the bound is corrected and the search goes on.
    @usableFromInline
    @inline(never)
    func evictOldest(cause: RemovalCause) -> Removal? {
        while true {
            let (lowest, next, stamp) = lowestShards()
            guard stamp != .max else { return nil }
            let shard = shard(lowest)
            lock(of: shard).pointee.lock()
            defer { lock(of: shard).pointee.unlock() }
            let oldest = shard.pointee.oldest()
            let bound = oldest < 0 ? .max : shard.pointee.entries.ledger(oldest).pointee.stamp
            guard oldest >= 0, isOlder(bound, inShard: lowest, than: next) else {
                head(of: shard).pointee.oldest.store(bound, ordering: .relaxed)
                continue
            }
            let isExpired = hasExpired(shard.pointee.entries.ledger(oldest).pointee.expiry)
            let removal = shard.pointee.evict(
                oldest,
                cause: isExpired ? .expired : cause,
                namesKey: observer != nil
            )
            head(of: shard).pointee.oldest
                .store(shard.pointee.queue.lowestStamp, ordering: .relaxed)
            return removal
        }
    }

    /// The number of the shard with the lowest bound, that of the one after it (itself if there is
    /// only one shard), and the bound; of equal bounds the first.
    private func lowestShards() -> (lowest: Int, next: Int, stamp: UInt64) {
        var lowest = (number: 0, stamp: UInt64.max)
        var next = (number: 0, stamp: UInt64.max)
        for number in 0...shardMask {
            let stamp = head(of: shard(number)).pointee.oldest.load(ordering: .relaxed)
            if stamp < lowest.stamp {
                next = lowest
                lowest = (number, stamp)
            } else if stamp < next.stamp {
                next = (number, stamp)
            }
        }
        return (lowest.number, next.stamp == .max ? lowest.number : next.number, lowest.stamp)
    }

    /// Whether an entry of shard `number` with `stamp` is older than any that shard `other` can
    /// hold; shards break ties by their numbers.
    private func isOlder(_ stamp: UInt64, inShard number: Int, than other: Int) -> Bool {
        guard other != number else { return true }
        let bound = head(of: shard(other)).pointee.oldest.load(ordering: .relaxed)
        return stamp < bound || stamp == bound && number < other
    }
}
