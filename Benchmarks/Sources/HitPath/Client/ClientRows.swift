import AsyncHTTPClient
import Foundation
import TieredCache
import TieredCacheHTTPClient

/// `URLSession` and AsyncHTTPClient with a cache below them, beside themselves: hits and misses of
/// 4 KiB from nginx on loopback, in another process.
enum ClientRows {
    /// What the rows gave: times, and what the origin was asked.
    struct Report {
        var outcomes: [Outcome] = []
        /// By row: its name, and requests to the origin per operation of each contender.
        var asked: [(name: String, contenders: [(name: String, perOperation: Double)])] = []

        /// Says whether what is called a hit is one.
        func printAsked() {
            guard !asked.isEmpty else { return }
            print("\nRequests to the origin per operation:")
            for row in asked {
                let parts = row.contenders.map {
                    "\($0.name) \(String(format: "%.2f", $0.perOperation))"
                }
                print("- \(row.name): \(parts.joined(separator: ", "))")
            }
        }
    }

    /// Measures the rows whose names are wanted.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> Report {
        var report = Report()
        let wanted = ClientRow.all.filter { isWanted($0.name) }
        guard !wanted.isEmpty else { return report }
        guard BenchTools.path("nginx") != nil, BenchTools.path("taskset") != nil else {
            print("No rows of clients: nginx or taskset is missing.")
            return report
        }
        let origin = try MissOrigin()
        defer { origin.stop() }
        for row in wanted {
            // A cache of its own each: what one row has stored is no part of the next.
            let place = "\(origin.directory)/clients-\(report.outcomes.count)"
            let clients = try Clients(origin: origin.base, directory: place)
            let contenders = try row.contenders(clients)
            try report.asked.append((row.name, contenders.map { try asked(of: $0, origin) }))
            let measured = Row(
                name: row.name,
                target: row.target,
                count: row.count,
                contenders: contenders
            )
            report.outcomes.append(
                Harness(rounds: max(3, min(rounds, 9))).measure(measured)
            )
            try clients.shutDown()
        }
        return report
    }

    /// What a contender asks the origin, after a first run.
    private static func asked(
        of contender: Contender,
        _ origin: MissOrigin
    ) throws -> (String, Double) {
        contender.run(Clients.urls)
        let before = try origin.requests()
        contender.run(Clients.urls)
        let count = try origin.requests() - before
        return (contender.name, Double(count) / Double(Clients.urls))
    }
}

/// A row: its contenders for the clients that it is given.
private struct ClientRow: Sendable {
    let name: String
    let target: Double?
    let count: Int
    let contenders: @Sendable (Clients) throws -> [Contender]

    static let all = hits(width: 1) + hits(width: 6) + misses + [uncached]

    private static func hits(width: Int) -> [ClientRow] {
        let many = width > 1 ? ", \(width) at a time" : ""
        return [
            ClientRow(name: "URLSession hit 4 KiB\(many)", target: 0.2, count: 10_000) { clients in
                [
                    clients.hits("TieredURLProtocol", width, clients.cachedSession),
                    clients.hits("URLSession and URLCache", width, clients.urlCacheSession),
                    clients.hits("URLSession, a constant", width, clients.constantSession),
                ]
            },
            // On Linux a session answers from a `URLCache` but never fills it: by hand, then.
            ClientRow(name: "URLSession hit 4 KiB, filled\(many)", target: nil, count: 10_000) {
                clients in
                try clients.fillURLCache()
                return [
                    clients.hits("TieredURLProtocol", width, clients.cachedSession),
                    clients.hits("URLCache, filled by hand", width, clients.urlCacheSession),
                ]
            },
            ClientRow(name: "HTTPClient hit 4 KiB\(many)", target: 0.2, count: 10_000) { clients in
                [
                    clients.hits("CachingHTTPClient", width, clients.cachingClient),
                    clients.hits("AsyncHTTPClient", width, clients.bareClient),
                ]
            },
        ]
    }

    /// What a cache cannot answer.
    private static let uncached = ClientRow(name: "HTTPClient POST", target: 1.05, count: 4000) {
        clients in
        [
            clients.posts("CachingHTTPClient", through: clients.cachingClient),
            clients.posts("AsyncHTTPClient", through: clients.bareClient),
        ]
    }

    private static let misses = [
        ClientRow(name: "URLSession miss 4 KiB, stored", target: 1.15, count: 2000) { clients in
            [
                clients.misses("TieredURLProtocol", clients.cachedSession),
                clients.misses("the engine", clients.engine),
                clients.misses("URLSession, bare", clients.bareSession),
            ]
        },
        ClientRow(name: "HTTPClient miss 4 KiB, stored", target: 1.15, count: 2000) { clients in
            [
                clients.misses("CachingHTTPClient", clients.cachingClient),
                clients.misses("the engine", clients.engine),
                clients.misses("AsyncHTTPClient", clients.bareClient),
            ]
        },
    ]
}
