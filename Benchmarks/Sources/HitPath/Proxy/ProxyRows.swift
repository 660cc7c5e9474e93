import Foundation
import Histogram

/// Hits of the proxies beside those of nginx's `proxy_cache`, asked by wrk over eight connections.
///
/// The time of a row is that of a request: one second divided by the requests in it.
enum ProxyRows {
    private static let names = ["player proxy", "reverse proxy"]

    /// Measures the rows whose names are wanted.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> [Outcome] {
        let wanted = BenchServers.sizes.flatMap { size in
            names.map {
                (name: "\($0) hit \(Self.name(size)), 8 connections", size: size, kind: $0)
            }
        }.filter { isWanted($0.name) }
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
            let isPlayer = row.kind == names[0]
            let path = isPlayer ? "\(player)http/\(origin)/" : reverse
            return try measure(
                row.name,
                row.kind,
                Side(
                    url: path + "\(row.size)",
                    process: (isPlayer ? playerProcess : reverseProcess).processIdentifier
                ),
                Side(
                    url: "http://127.0.0.1:\(servers.cachePort)/\(row.size)",
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

    /// One row of the time of a request, and one of the processor time that it takes the server.
    private static func measure(
        _ name: String,
        _ kind: String,
        _ ours: Side,
        _ peer: Side,
        rounds: Int
    ) throws -> [Outcome] {
        let sides = [ours, peer]
        var times: [[Double]] = [[], []]
        var costs: [[Double]] = [[], []]
        var histogram = Histogram<UInt64>(highestTrackableValue: 10_000_000_000)
        for side in sides { _ = try Wrk.run(side.url, seconds: 1) }
        for round in 0..<rounds {
            for turn in 0..<2 {
                let index = (turn + round) % 2
                let before = BenchTools.processorTime(sides[index].process)
                let result = try Wrk.run(sides[index].url, seconds: 2)
                let cost = BenchTools.processorTime(sides[index].process) - before
                times[index].append(1e9 / result.requestsPerSecond)
                costs[index].append(cost / result.requests)
                guard index == 0 else { continue }
                for (value, count) in result.latencies { histogram.record(value, count: count) }
            }
        }
        let contenders = [
            Contender(kind) { _ in }, Contender("nginx proxy_cache") { _ in },
        ]
        let row = Row(name: name, target: 1, count: 1, contenders: contenders)
        let cost = Row(name: "- its processor time", target: nil, count: 1, contenders: contenders)
        return [
            Outcome(row: row, times: times, latency: histogram),
            Outcome(row: cost, times: costs, latency: histogram),
        ]
    }

    private static func name(_ size: Int) -> String {
        size >= 1 << 20 ? "\(size >> 20) MiB" : "\(size >> 10) KiB"
    }
}

/// The HTTP client that asks again and again.
private enum Wrk {
    struct Result {
        var requestsPerSecond: Double
        var requests: Double
        /// Nanoseconds, and how many of a thousand requests took about that long.
        var latencies: [(UInt64, UInt64)]
    }

    static func run(_ url: String, seconds: Int) throws -> Result {
        guard let wrk = BenchTools.path("wrk") else { throw BenchFailure("there is no wrk") }
        let output = Pipe()
        let process = try BenchTools.start(
            wrk,
            ["-t1", "-c8", "-d\(seconds)s", "--latency", url],
            onCore: BenchTools.clientCore,
            output: output
        )
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(),
            as: UTF8.self
        )
        process.waitUntilExit()
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        guard let rate = lines.first(where: { $0.first == "Requests/sec:" })?.last,
            let rate = Double(rate), rate > 0,
            let requests = lines.first(where: { $0.dropFirst().first == "requests" })?.first,
            let requests = Double(requests), !text.contains("Non-2xx")
        else { throw BenchFailure("wrk \(url) said: \(text)") }
        let percentiles = lines.compactMap { line -> (Double, UInt64)? in
            guard line.count == 2, line[0].hasSuffix("%"), let part = Double(line[0].dropLast()),
                let time = nanoseconds(line[1])
            else { return nil }
            return (part, time)
        }
        return Result(requestsPerSecond: rate, requests: requests, latencies: spread(percentiles))
    }

    /// Percentiles as counts of a thousand.
    private static func spread(_ percentiles: [(Double, UInt64)]) -> [(UInt64, UInt64)] {
        var last = 0.0
        return percentiles.map { percentile, time in
            defer { last = percentile }
            return (time, UInt64((percentile - last) * 10))
        }
    }

    private static func nanoseconds(_ text: String) -> UInt64? {
        for (suffix, factor) in [("us", 1e3), ("ms", 1e6), ("s", 1e9)] where text.hasSuffix(suffix)
        {
            return Double(text.dropLast(suffix.count)).map { UInt64($0 * factor) }
        }
        return nil
    }
}
