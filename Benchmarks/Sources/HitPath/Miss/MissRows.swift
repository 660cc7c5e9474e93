import AsyncHTTPClient
import Foundation
import SystemPackage
import TieredCache

/// Misses beside the bare HTTP client: six at a time, from nginx on loopback, in another process.
enum MissRows {
    /// What the rows gave: times, and changes of thread per operation.
    struct Report {
        var outcomes: [Outcome] = []
        /// By row: its name, and the switches per operation of each contender.
        var switches: [(name: String, contenders: [(name: String, perOperation: Double)])] = []

        /// Says how often the process gave up a processor or lost it, per operation.
        func printSwitches() {
            guard !switches.isEmpty else { return }
            print(
                "\nContext switches of the process per operation (the origin is another process):"
            )
            for row in switches {
                let parts = row.contenders.map {
                    "\($0.name) \(String(format: "%.1f", $0.perOperation))"
                }
                print("- \(row.name): \(parts.joined(separator: ", "))")
            }
        }
    }

    private struct Kind {
        let name: String
        let path: String
        let target: Double
        let count: Int
        let isStored: Bool
        var isRevalidated = false
    }

    private static let kinds = [
        Kind(
            name: "miss 4 KiB, memory only",
            path: "small",
            target: 1.4,
            count: 1200,
            isStored: false
        ),
        Kind(name: "miss 4 KiB, stored", path: "small", target: 2, count: 1200, isStored: true),
        Kind(name: "miss 1 MiB, stored", path: "large", target: 1.3, count: 60, isStored: true),
        Kind(
            name: "304 of 4 KiB, stored on disk",
            path: "stale",
            target: 1.4,
            count: 1200,
            isStored: true,
            isRevalidated: true
        ),
    ]

    /// Measures the rows whose names are wanted.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> Report {
        var report = Report()
        let wanted = kinds.filter { isWanted($0.name) }
        guard !wanted.isEmpty else { return report }
        guard BenchTools.path("nginx") != nil, BenchTools.path("taskset") != nil else {
            print("No rows of misses: nginx or taskset is missing.")
            return report
        }
        let origin = try MissOrigin()
        defer { origin.stop() }
        let client = HTTPClient(eventLoopGroupProvider: .singleton)
        defer { try? client.syncShutdown() }
        for kind in wanted {
            try measure(kind, origin, client, rounds: max(3, min(rounds, 15)), into: &report)
        }
        return report
    }

    private static func measure(
        _ kind: Kind,
        _ origin: MissOrigin,
        _ client: HTTPClient,
        rounds: Int,
        into report: inout Report
    ) throws {
        let directory = origin.directory + "/cache-\(report.outcomes.count)"
        var configuration = MediaCache.Configuration(
            directory: kind.isStored ? URL(filePath: directory) : nil
        )
        configuration.diskLimit = 16 << 30
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let base = "\(origin.base)/\(kind.path)/"
        let ours = Meter(isRepeating: kind.isRevalidated) { number in
            let body = try await cache.data(for: CacheRequest("\(base)\(number)"))
            guard !body.isEmpty else { throw BenchFailure("an empty body") }
        }
        let condition = kind.isRevalidated ? try Blocking.run { try await client.tag(base) } : nil
        let bare = Meter(isRepeating: kind.isRevalidated) { number in
            try await client.get("\(base)\(number)", condition: condition)
        }
        let row = Row(
            name: kind.name,
            target: kind.target,
            count: kind.count,
            contenders: [
                Contender("the engine") { ours.run($0) },
                Contender("AsyncHTTPClient") { bare.run($0) },
            ]
        )
        report.outcomes.append(Harness(rounds: rounds).measure(row))
        report.switches.append(
            (
                kind.name,
                [("the engine", ours.perOperation), ("AsyncHTTPClient", bare.perOperation)]
            )
        )
        try Blocking.run { await cache.shutdown() }
        // The directory stays until the origin stops: for a minute ext4 looks at each inode that was
        // deleted before it makes a file, which the next row would measure.
    }
}

extension HTTPClient {
    /// Asks for a URL and collects the body.
    fileprivate func get(_ url: String, condition: String?) async throws {
        var request = HTTPClientRequest(url: url)
        if let condition { request.headers.add(name: "If-None-Match", value: condition) }
        let response = try await execute(request, timeout: .seconds(30))
        let body = try await response.body.collect(upTo: 2 << 20)
        guard response.status == (condition == nil ? .ok : .notModified),
            condition != nil || body.readableBytes > 0
        else { throw BenchFailure("\(url) said \(response.status)") }
    }

    /// The entity tag of what all URLs below `base` lead to.
    fileprivate func tag(_ base: String) async throws -> String {
        let response = try await execute(HTTPClientRequest(url: base + "0"), timeout: .seconds(30))
        _ = try await response.body.collect(upTo: 2 << 20)
        guard let tag = response.headers.first(name: "ETag") else {
            throw BenchFailure("the origin has no entity tag")
        }
        return tag
    }
}
