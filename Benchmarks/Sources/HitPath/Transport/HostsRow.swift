import Foundation

/// 10,000 requests, one after the other, to 1,000 hosts in turn: the transport beside
/// AsyncHTTPClient, each in a process of its own.
///
/// The time is that of a request. What the last one leaves open and resident is what a client keeps
/// for hosts that it may be asked for again; both close what was idle for 60 s, which no run takes.
enum HostsRow {
    static let name = "transport 1,000 hosts in turn"

    /// Measures the row; says so where it cannot.
    ///
    /// - Parameters:
    ///   - rounds: how many there are at most.
    ///   - report: gets what the row gave.
    /// - Throws: why it could not be measured.
    static func measure(_ rounds: Int, into report: inout TransportRows.Report) throws {
        // The origin has a listener for each host, and a connection of each.
        let limit = BenchTools.raiseDescriptorLimit()
        guard limit >= 3 * HostsProcess.hosts else {
            return print("No row of 1,000 hosts: a process may open \(limit) files only.")
        }
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let origin = try MissOrigin.withManyHosts()
        defer { origin.stop() }
        let clients = HostsProcess.Client.allCases
        let runs = try Harness(rounds: max(3, min(rounds, 5))).turns(clients) { client in
            try HostsProcess.start(program, client, port: origin.port)
        }
        report.outcomes.append(
            Outcome(
                name,
                target: 1,
                contenders: clients.map(\.rawValue),
                times: runs.map { $0.map(\.timePerRequest) },
                latencies: runs[0].flatMap(\.times)
            )
        )
        report.figures += [
            figure("descriptors that 1,000 hosts leave open", runs, "") { Double($0.descriptors) },
            figure("resident memory that they leave", runs, " MB") { Double($0.resident) / 1e6 },
        ]
    }

    /// The middle of the rounds.
    private static func figure(
        _ name: String,
        _ runs: [[HostsRun]],
        _ unit: String,
        _ value: (HostsRun) -> Double
    ) -> TransportRows.Figure {
        TransportRows.Figure(
            name: name,
            ours: runs[0].map(value).median,
            peer: runs[1].map(value).median,
            unit: unit
        )
    }
}

/// What a client took for its requests, and what it held after the last one.
struct HostsRun: Codable, Sendable {
    /// Nanoseconds of each request.
    var times: [UInt64] = []
    /// Descriptors that are open, and were not before.
    var descriptors = 0
    /// Bytes in memory beyond those before.
    var resident = 0

    /// Nanoseconds, the mean of all.
    var timePerRequest: Double { Double(times.reduce(0, +)) / Double(max(1, times.count)) }
}
