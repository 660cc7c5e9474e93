import TieredCache

/// A body of 256 MiB over one connection, read and dropped: the transport beside curl.
///
/// curl says itself how long it took. So the start of its process is not counted, 8 ms where the
/// body takes some 90, nor how soon its end is noticed. It opens a connection each time, and the
/// transport one for all; that takes a tenth of a millisecond.
enum FilmRow {
    static let name = "transport GET 256 MiB"

    /// Measures the row; says so where it cannot.
    ///
    /// - Parameters:
    ///   - rounds: how many there are at most.
    ///   - report: gets what the row gave.
    /// - Throws: why it could not be measured.
    static func measure(_ rounds: Int, into report: inout TransportRows.Report) throws {
        guard let curl = BenchTools.path("curl") else {
            return print("No row of the transport beside curl: curl is missing.")
        }
        let origin = try MissOrigin.withFilm()
        defer { origin.stop() }
        let address = origin.address
        try TransportPair.with { pair in
            let sides: [() throws -> Double] = [
                { try Self.time(of: pair.transport, at: address) },
                { try Self.time(of: curl, at: address) },
            ]
            let times = try Harness(rounds: max(3, min(rounds, 15))).turns(sides) { try $0() }
            report.outcomes.append(
                Outcome(
                    name,
                    target: 1,
                    contenders: ["the transport", "curl"],
                    times: times,
                    latencies: times[0].map { UInt64($0) }
                )
            )
        }
    }

    /// Nanoseconds from the request to the end of the body.
    private static func time(
        of transport: NIOTransport,
        at origin: OriginAddress
    ) throws -> Double {
        let start = ContinuousClock.now
        let count = try Blocking.run { try await transport.length(of: "/film", at: origin) }
        let time = (ContinuousClock.now - start).nanoseconds
        guard count == MissOrigin.filmLength else { throw BenchFailure("a film of \(count) bytes") }
        return time
    }

    /// Nanoseconds from curl's first step towards the origin to the end of the body.
    private static func time(of curl: String, at origin: OriginAddress) throws -> Double {
        let said = try BenchTools.run(
            curl,
            [
                "-s", "-f", "-o", "/dev/null", "-w", "%{time_total} %{size_download}",
                "\(origin.url)/film",
            ]
        )
        let words = said.split(separator: " ")
        guard words.count == 2, let seconds = Double(words[0]),
            Int(words[1]) == MissOrigin.filmLength
        else { throw BenchFailure("curl said: \(said)") }
        return seconds * 1e9
    }
}
