import Foundation
import Histogram

/// Hits and misses of the proxies beside those of nginx's `proxy_cache`, asked by wrk.
///
/// The time of a row is that of a request: one second divided by the requests in it.
enum ProxyRows {
    private struct Kind {
        /// Which proxy.
        let proxy: String
        let size: Int
        var connections = 8
        var isMiss = false
        var target = 1.0

        var name: String {
            let size = size >= 1 << 20 ? "\(size >> 20) MiB" : "\(size >> 10) KiB"
            return "\(proxy) \(isMiss ? "miss" : "hit") \(size), \(connections) connections"
        }
    }

    private static let names = ["player proxy", "reverse proxy"]

    private static let kinds =
        BenchServers.sizes.flatMap { size in names.map { Kind(proxy: $0, size: size) } }
        + [8, 64].map { miss(names[0], connections: $0, target: 1.25) }
        // The rate must not fall as connections grow.
        + [4, 8, 16, 32, 64, 256].map { miss(names[1], connections: $0, target: 1) }

    private static func miss(_ proxy: String, connections: Int, target: Double) -> Kind {
        Kind(proxy: proxy, size: 4096, connections: connections, isMiss: true, target: target)
    }

    /// Measures the rows whose names are wanted.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> [Outcome] {
        let wanted = kinds.filter { isWanted($0.name) }
        guard !wanted.isEmpty, let program = BenchServers.findProgram() else { return [] }
        let servers = try BenchServers(program: program)
        defer { servers.stop() }
        let origin = "127.0.0.1:\(servers.originPort)"
        let (playerProcess, player) = try servers.serve("player")
        let (reverseProcess, reverse) = try servers.serve(
            "reverse",
            ["--origin", "http://\(origin)"]
        )
        return try wanted.flatMap { row in
            let isPlayer = row.proxy == names[0]
            let path = isPlayer ? "\(player)http/\(origin)/" : reverse
            let file = row.isMiss ? "small/" : "\(row.size)"
            return try measure(
                row,
                servers,
                Side(
                    url: path + file,
                    process: (isPlayer ? playerProcess : reverseProcess).processIdentifier
                ),
                Side(
                    url: "http://127.0.0.1:\(servers.cachePort)/\(file)",
                    process: servers.nginx.processIdentifier
                ),
                rounds: max(3, min(rounds, 7))
            )
        }
    }

    private struct Side {
        var url: String
        var process: Int32
    }

    /// One row of the time of a request, and for hits one of the server's processor time.
    private static func measure(
        _ kind: Kind,
        _ servers: BenchServers,
        _ ours: Side,
        _ peer: Side,
        rounds: Int
    ) throws -> [Outcome] {
        let sides = [ours, peer]
        var times: [[Double]] = [[], []]
        var costs: [[Double]] = [[], []]
        var histogram = Histogram<UInt64>(highestTrackableValue: 10_000_000_000)
        var runs = 0
        let ask = { (side: Side, seconds: Int) in
            runs += 1
            // No two runs ask for the same.
            let script = kind.isMiss ? try servers.script(counting: "\(runs)-\(kind.name)") : nil
            return try Wrk.run(
                side.url,
                seconds: seconds,
                connections: kind.connections,
                script: script
            )
        }
        for side in sides { _ = try ask(side, 1) }
        for round in 0..<rounds {
            for turn in 0..<2 {
                let index = (turn + round) % 2
                let before = BenchTools.processorTime(sides[index].process)
                let result = try ask(sides[index], 2)
                let cost = BenchTools.processorTime(sides[index].process) - before
                times[index].append(1e9 / result.requestsPerSecond)
                costs[index].append(cost / result.requests)
                guard index == 0 else { continue }
                for (value, count) in result.latencies { histogram.record(value, count: count) }
            }
        }
        let contenders = [
            Contender(kind.proxy) { _ in }, Contender("nginx proxy_cache") { _ in },
        ]
        let row = Row(name: kind.name, target: kind.target, count: 1, contenders: contenders)
        let outcome = Outcome(row: row, times: times, latency: histogram)
        // One process of nginx is the origin and the peer, so its time of a miss says nothing.
        if kind.isMiss { return [outcome] }
        let cost = Row(name: "- its processor time", target: nil, count: 1, contenders: contenders)
        return [outcome, Outcome(row: cost, times: costs, latency: histogram)]
    }
}
