import HTTPCaching
import TieredCache

/// What `stats` says: what there is, and what has happened since the directory was made.
struct StatsReport: Equatable {
    var entries: Int64
    /// What the disk allocates for files.
    var bytes: Int64
    var limit: Int64
    /// Nil where nothing was counted yet.
    var lifetime: LifetimeStatistics?

    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("entries", .integer(entries)),
            .init("bytes", .integer(bytes)),
            .init("limit", .integer(limit)),
        ]
        if let lifetime { members += Self.members(lifetime) }
        return .object(members)
    }

    private static func members(_ lifetime: LifetimeStatistics) -> [JSONValue.Member] {
        let sums = lifetime.statistics
        return [
            .init("since", .string(lifetime.since.timestamp)),
            .init(
                "requests",
                object([
                    ("memory", sums.memoryHits), ("disk", sums.diskHits), ("miss", sums.misses),
                ])
            ),
            .init("hitRatio", ratio(sums.hitRatio)),
            .init(
                "bodyBytes",
                object([
                    ("memory", sums.bytesFromMemory), ("disk", sums.bytesFromDisk),
                    ("origin", sums.bytesFromOrigin),
                ])
            ),
            .init("byteHitRatio", ratio(sums.byteHitRatio)),
            .init("misses", object(sums.missReasons)),
            .init("left", object(sums.departures)),
            .init("evictedBytes", .integer(sums.bytesEvicted)),
            .init("damagedBlocks", .integer(sums.blocksDamaged)),
        ]
    }

    private static func object(_ members: [(String, Int64)]) -> JSONValue {
        .object(members.map { .init($0.0, .integer($0.1)) })
    }

    /// To a ten-thousandth: more digits would be noise.
    private static func ratio(_ value: Double?) -> JSONValue {
        value.map { .number(($0 * 10_000).rounded() / 10_000) } ?? .null
    }
}

extension StatsReport {
    /// For people: what there is, then one line for each thing that was counted.
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
                + Self.shares([
                    ("memory", sums.bytesFromMemory), ("disk", sums.bytesFromDisk),
                    ("origin", origin),
                ]),
            "misses      \(Self.list(sums.missReasons))",
            "left        \(Self.list(sums.departures)); evicted "
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

extension Statistics {
    fileprivate var missReasons: [(String, Int64)] {
        [
            ("absent", missesAbsent), ("variant", missesVariant), ("stale", missesStale),
            ("partial", missesPartial), ("damaged", missesDamaged), ("bypassed", missesBypassed),
        ]
    }

    fileprivate var departures: [(String, Int64)] {
        [
            ("expired", entriesExpired), ("evicted", entriesEvicted),
            ("replaced", entriesReplaced), ("removed", entriesRemoved),
            ("corrupted", entriesCorrupted),
        ]
    }
}
