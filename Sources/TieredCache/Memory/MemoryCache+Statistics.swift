import Synchronization

extension MemoryCache {
    /// What the cache has done and what it holds; exact while no other thread uses the cache.
    ///
    /// - Complexity: takes each shard's lock once.
    package var statistics: MemoryStatistics {
        var statistics = MemoryStatistics()
        for number in 0...shardMask {
            let shard = shard(number)
            lock(of: shard).pointee.lock()
            defer { lock(of: shard).pointee.unlock() }
            statistics.hits += shard.pointee.hits
            statistics.misses += shard.pointee.misses
            statistics.insertions += shard.pointee.insertions
            for cause in RemovalCause.allCases {
                statistics.removals[cause, default: 0] += shard.pointee.removals[cause.position]
            }
        }
        statistics.refusals = refusals.load(ordering: .relaxed)
        statistics.count = count.load(ordering: .relaxed)
        statistics.cost = cost.load(ordering: .relaxed)
        statistics.costLimit = costLimit.load(ordering: .relaxed)
        return statistics
    }

    /// The number of entries stored, expired ones that were not noticed yet included.
    package var entryCount: Int { count.load(ordering: .relaxed) }

    /// The sum of the costs of the entries stored.
    package var totalCost: Int { cost.load(ordering: .relaxed) }
}
