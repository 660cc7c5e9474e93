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
            let entries = shard.pointee.entries
            let bound = head(of: shard).pointee.oldest.load(ordering: .relaxed)
            for entry in 0..<shard.pointee.extent where entries.ledger(entry).pointee.isLive {
                let ledger = entries.ledger(entry).pointee
                sums.cost += ledger.cost
                sums.count += 1
                guard bound <= ledger.stamp else {
                    return "the bound of shard \(number) is younger than entry \(entry)"
                }
                guard floor.load(ordering: .relaxed) <= ledger.stamp else {
                    return "the floor is younger than entry \(entry) of shard \(number)"
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
        let bounds = queue.bounds
        for entry in 0..<extent where entries.ledger(entry).pointee.isLive {
            live += 1
            let (key, ledger) = (entries.key(entry), entries.ledger(entry).pointee)
            let hash = MemoryKey.hash(of: key)
            let tag = UInt32(truncatingIfNeeded: hash >> 32)
            guard Int(truncatingIfNeeded: hash) & mask == shard else { return "\(key) astray" }
            guard ledger.tag == tag else { return "wrong tag of \(key)" }
            let found = MemoryKey.withBytes(of: key) { find(key, bytes: $0, tag: tag) }
            guard found == entry else { return "\(key) cannot be found" }
            guard stamps.insert(ledger.stamp).inserted else { return "stamp given twice" }
            guard ledger.stamp <= clock else { return "stamp from the future" }
            guard let own = bounds[ledger.ticket], own.count == 1, own[0] <= ledger.stamp else {
                return "\(key) not queued once, below its stamp"
            }
        }
        guard index.count == live else { return "index has \(index.count) of \(live) entries" }
        var (free, next) = (0, firstFree)
        while next >= 0, free <= extent {
            guard !entries.ledger(next).pointee.isLive else { return "\(next) is free and in use" }
            (free, next) = (free + 1, entries.ledger(next).pointee.cost)
        }
        guard free + live == extent else { return "\(extent - live - free) numbers lost" }
        return queue.brokenInvariant()
    }
}

extension MemoryQueue {
    /// The stamps of all records by their tickets.
    var bounds: [UInt32: [UInt64]] {
        let records = (first..<end).map { ring[$0 & mask] } + (0..<heapCount).map { heap[$0] }
        return Dictionary(grouping: records, by: \.ticket).mapValues { $0.map(\.stamp) }
    }

    func brokenInvariant() -> String? {
        for place in first..<max(first, end - 1) {
            guard ring[place & mask].stamp < ring[(place + 1) & mask].stamp else {
                return "ring out of order at \(place)"
            }
        }
        for place in 0..<heapCount where heap[place].stamp < heap[max(0, place - 1) / 2].stamp {
            return "heap out of order at \(place)"
        }
        return nil
    }
}
