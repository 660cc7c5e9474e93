import Synchronization

extension MemoryCache {
    /// What is wrong with the structures, or `nil`: run after every step of a test.
    ///
    /// No other thread may use the cache meanwhile.
    package func brokenInvariant() -> String? {
        var sums = MemoryGrowth(cost: 0, count: 0)
        for number in 0...shardMask {
            let shard = shard(number)
            if let problem = shard.pointee.brokenInvariant(shard: number, mask: shardMask) {
                return "shard \(number): \(problem)"
            }
            for entry in 0..<shard.pointee.extent where shard.pointee.stamps[entry] != 0 {
                sums.cost += shard.pointee.ledgers[entry].cost
                sums.count += 1
                guard hints[number].load(ordering: .relaxed) <= shard.pointee.stamps[entry] else {
                    return "the hint of shard \(number) is younger than entry \(entry)"
                }
            }
        }
        guard sums.cost == totalCost else { return "cost \(totalCost), entries \(sums.cost)" }
        guard sums.count == entryCount else { return "count \(entryCount), entries \(sums.count)" }
        guard !exceedsLimits(with: MemoryGrowth(cost: 0, count: 0)) else { return "above limits" }
        return nil
    }

    /// The number of the shard that `key` belongs to, for a model of the order.
    package func shardNumber(of key: Key) -> Int {
        Int(truncatingIfNeeded: MemoryKey.hash(of: key)) & shardMask
    }
}

extension MemoryShard {
    func brokenInvariant(shard: Int, mask: Int) -> String? {
        var live = 0
        var stamps: Set<UInt64> = []
        for entry in 0..<extent where self.stamps[entry] != 0 {
            live += 1
            let key = entries[entry].key
            let hash = MemoryKey.hash(of: key)
            let tag = UInt32(truncatingIfNeeded: hash >> 32)
            guard Int(truncatingIfNeeded: hash) & mask == shard else { return "\(key) astray" }
            guard ledgers[entry].tag == tag else { return "wrong tag of \(key)" }
            guard find(key, tag: tag) == entry else { return "\(key) cannot be found" }
            guard stamps.insert(self.stamps[entry]).inserted else { return "stamp given twice" }
            guard self.stamps[entry] <= clock else { return "stamp from the future" }
        }
        guard index.count == live else { return "index has \(index.count) of \(live) entries" }
        var (free, next) = (0, firstFree)
        while next >= 0, free <= extent {
            guard self.stamps[next] == 0 else { return "entry \(next) is free and in use" }
            (free, next) = (free + 1, ledgers[next].cost)
        }
        guard free + live == extent else { return "\(extent - live - free) numbers lost" }
        return nil
    }
}
