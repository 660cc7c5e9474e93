import HTTPCaching
import TieredCache

/// The output of `stats`: the usage of the directory, and its statistics since it was created.
struct StatsReport: Equatable {
    var entries: Int64
    /// The bytes allocated on disk.
    var bytes: Int64
    var limit: Int64
    /// The statistics; nil if nothing was counted yet.
    var lifetime: MediaCache.LifetimeStatistics?
}

extension StatsReport: Encodable {
    private enum CodingKeys: CodingKey {
        case entries, bytes, limit
        case since, requests, hitRatio, bodyBytes, byteHitRatio, misses, left
        case evictedBytes, damagedBlocks
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(entries, forKey: .entries)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(limit, forKey: .limit)
        guard let lifetime else { return }
        let sums = lifetime.statistics
        try container.encode(lifetime.since.timestamp, forKey: .since)
        try container.encode(Self.object(sums.answers), forKey: .requests)
        try container.encode(Self.ratio(sums.hitRatio), forKey: .hitRatio)
        try container.encode(Self.object(sums.bodyBytes), forKey: .bodyBytes)
        try container.encode(Self.ratio(sums.byteHitRatio), forKey: .byteHitRatio)
        try container.encode(Self.object(sums.missReasons), forKey: .misses)
        try container.encode(Self.object(sums.removals), forKey: .left)
        try container.encode(sums.bytesEvicted, forKey: .evictedBytes)
        try container.encode(sums.blocksDamaged, forKey: .damagedBlocks)
    }

    private static func object(_ members: [(String, Int64)]) -> [String: Int64] {
        Dictionary(members) { $1 }
    }

    /// Rounds to a ten-thousandth.
    private static func ratio(_ value: Double?) -> Double? {
        value.map { ($0 * 10_000).rounded() / 10_000 }
    }
}

extension StatsReport {
    /// The text: the usage, then one line for each statistic.
    var lines: [String] {
        let count = entries == 1 ? "1 entry" : "\(entries) entries"
        let first = "\(count), \(ProgressLine.size(bytes)) of \(ProgressLine.size(limit))"
        guard let lifetime else { return [first] }
        let sums = lifetime.statistics
        let origin = sums.bytesFromOrigin
        return [
            first,
            "since       \(lifetime.since.timestamp)",
            "requests    \(sums.lookups): "
                + Self.shares([
                    ("memory", sums.memoryHits), ("disk", sums.diskHits), ("missed", sums.misses),
                ]),
            "body bytes  \(ProgressLine.size(sums.bytesFromCache + origin)): "
                + Self.shares(sums.bodyBytes),
            "misses      \(Self.list(sums.missReasons))",
            "left        \(Self.list(sums.removals)); evicted "
                + "\(ProgressLine.size(sums.bytesEvicted)), damaged blocks \(sums.blocksDamaged)",
        ]
    }

    /// `memory 12.5 %, disk 50.0 %, missed 37.5 %`.
    private static func shares(_ parts: [(String, Int64)]) -> String {
        let all = parts.reduce(0.0) { $0 + Double($1.1) }
        guard all > 0 else { return "none" }
        return parts.map { name, value in
            let permille = Int((Double(value) / all * 1000).rounded())
            return "\(name) \(permille / 10).\(permille % 10) %"
        }.joined(separator: ", ")
    }

    private static func list(_ parts: [(String, Int64)]) -> String {
        parts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }
}

extension MediaCache.Statistics {
    fileprivate var answers: [(String, Int64)] {
        [("memory", memoryHits), ("disk", diskHits), ("miss", misses)]
    }

    fileprivate var bodyBytes: [(String, Int64)] {
        [("memory", bytesFromMemory), ("disk", bytesFromDisk), ("origin", bytesFromOrigin)]
    }

    fileprivate var missReasons: [(String, Int64)] {
        [
            ("absent", missesAbsent), ("variant", missesVariant), ("stale", missesStale),
            ("partial", missesPartial), ("damaged", missesDamaged), ("bypassed", missesBypassed),
        ]
    }

    fileprivate var removals: [(String, Int64)] {
        [
            ("expired", entriesExpired), ("evicted", entriesEvicted),
            ("replaced", entriesReplaced), ("removed", entriesRemoved),
            ("corrupted", entriesCorrupted),
        ]
    }
}
