import Foundation

/// The HTTP client that asks again and again.
enum Wrk {
    struct Result {
        var requestsPerSecond: Double
        var requests: Double
        /// Nanoseconds, and how many of a thousand requests took about that long.
        var latencies: [(UInt64, UInt64)]
    }

    /// Asks for one URL, or for a new one below it each time.
    static func run(
        _ url: String,
        seconds: Int,
        connections: Int = 8,
        script: String? = nil
    ) throws -> Result {
        guard let wrk = BenchTools.path("wrk") else { throw BenchFailure("there is no wrk") }
        let output = Pipe()
        let process = try BenchTools.start(
            wrk,
            ["-t1", "-c\(connections)", "-d\(seconds)s", "--latency"]
                + (script.map { ["-s", $0] } ?? []) + [url],
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
