@_spi(Benchmarks) @testable import TieredCache

/// The trivially correct memory cache: a dictionary, and a search for the oldest at each eviction.
struct MemoryModel {
    struct Entry {
        var value: Int
        var cost: Int
        var expiry: Int64?
        var stamp: UInt64
        let shard: Int
    }

    struct Removal: Hashable {
        let key: String
        let value: Int
        let cause: RemovalCause
    }

    let limits: MemoryLimits
    let shardNumber: (String) -> Int
    var now: Int64 = 0
    var entries: [String: Entry] = [:]
    var statistics = MemoryStatistics()
    var removals: [Removal] = []
    private var fraction = 1.0
    private var epoch: UInt64 = 1 << 20
    private var clocks: [Int: UInt64] = [:]

    init(limits: MemoryLimits, shardNumber: @escaping (String) -> Int) {
        self.limits = limits
        self.shardNumber = shardNumber
    }

    var cost: Int { entries.values.reduce(0) { $0 + $1.cost } }
    var costLimit: Int { Int(Double(limits.maximumCost) * fraction) }
    var countLimit: Int? { limits.maximumCount.map { Int(Double($0) * fraction) } }

    mutating func value(_ key: String) -> Int? {
        guard let entry = entries[key] else {
            statistics.misses += 1
            return nil
        }
        guard !isExpired(entry) else {
            statistics.misses += 1
            drop(key, .expired)
            return nil
        }
        statistics.hits += 1
        let stamp = stamp(entry.shard)
        entries[key]?.stamp = stamp
        return entry.value
    }

    /// - Parameter evicted: what the cache evicted first. Where the rule leaves a choice, the model
    ///   follows the cache if that kept to the rule.
    mutating func insert(
        _ key: String,
        _ value: Int,
        cost: Int,
        lifetime: Int64?,
        evicted: Removal?
    ) -> Bool {
        let cost = max(0, cost)
        guard cost <= limits.maximumEntryCost, cost <= costLimit else {
            statistics.refusals += 1
            drop(key, .replaced)
            return false
        }
        let shard = shardNumber(key)
        epoch = max(epoch, clocks[shard, default: 0]) + 1 << 20
        let countBefore = entries.count
        let isNew = entries[key] == nil
        drop(key, .replaced)
        entries[key] = Entry(
            value: value,
            cost: cost,
            expiry: lifetime.map { now + $0 },
            stamp: stamp(shard),
            shard: shard
        )
        statistics.insertions += 1
        if isNew, exceedsLimits, let evicted, mayEvict(evicted, from: shard, countBefore) {
            drop(evicted.key, entries[evicted.key].map(isExpired) ?? false ? .expired : .size)
        }
        evict(.size)
        return true
    }

    mutating func remove(_ key: String) -> Int? {
        guard let entry = entries[key] else { return nil }
        drop(key, isExpired(entry) ? .expired : .explicit)
        return isExpired(entry) ? nil : entry.value
    }

    func contains(_ key: String) -> Bool {
        entries[key].map { !isExpired($0) } ?? false
    }

    mutating func limit(_ fraction: Double) {
        self.fraction = fraction
        evict(.pressure)
    }

    mutating func removeAll(_ cause: RemovalCause, where condition: (String, Entry) -> Bool) {
        for (key, entry) in entries where condition(key, entry) { drop(key, cause) }
    }

    func isExpired(_ entry: Entry) -> Bool {
        entry.expiry.map { $0 <= now } ?? false
    }

    private var exceedsLimits: Bool { cost > costLimit || entries.count > countLimit ?? .max }

    /// The oldest entry, of all or of those of one shard.
    private func oldest(in shard: Int? = nil) -> (key: String, value: Entry)? {
        entries.filter { shard == nil || $0.value.shard == shard }.min {
            ($0.value.stamp, $0.value.shard) < ($1.value.stamp, $1.value.shard)
        }
    }

    /// Whether an insertion into `shard` may evict this: the shard's oldest, if the oldest of all
    /// is older by no more insertions than a sixteenth of the entries that there were.
    private func mayEvict(_ removal: Removal, from shard: Int, _ count: Int) -> Bool {
        guard let nearby = oldest(in: shard), let oldest = oldest() else { return false }
        return nearby.key == removal.key && nearby.value.value == removal.value
            && nearby.value.stamp <= oldest.value.stamp + UInt64(count / 16) << 20
    }

    private mutating func evict(_ cause: RemovalCause) {
        while exceedsLimits {
            guard let (key, entry) = oldest() else { return }
            drop(key, isExpired(entry) ? .expired : cause)
        }
    }

    private mutating func drop(_ key: String, _ cause: RemovalCause) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        statistics.removals[cause, default: 0] += 1
        removals.append(Removal(key: key, value: entry.value, cause: cause))
    }

    private mutating func stamp(_ shard: Int) -> UInt64 {
        let stamp = max(clocks[shard, default: 0] + 1, epoch)
        clocks[shard] = stamp
        return stamp
    }
}
