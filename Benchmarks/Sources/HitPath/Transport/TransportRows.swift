import AsyncHTTPClient
import Foundation
import HTTPTypes
import TieredCache

/// The transport beside AsyncHTTPClient: GET of 4 KiB six at a time, the body collected, from nginx
/// on loopback in another process.
enum TransportRows {
    /// What the row gave: times, and the processor time per operation of each contender.
    struct Report {
        var outcomes: [Outcome] = []
        var processorTime: [(name: String, microseconds: Double)] = []

        /// Says what each operation costs the process, all threads together.
        func printProcessorTime() {
            guard !processorTime.isEmpty else { return }
            let parts = processorTime.map { "\($0.name) \(String(format: "%.1f", $0.microseconds)) µs" }
            print("\nProcessor time per GET of 4 KiB: \(parts.joined(separator: ", "))")
        }
    }

    private static let name = "transport GET 4 KiB"

    /// Measures the row if it is wanted.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> Report {
        var report = Report()
        guard isWanted(name) else { return report }
        guard BenchTools.path("nginx") != nil, BenchTools.path("taskset") != nil else {
            print("No row of the transport: nginx or taskset is missing.")
            return report
        }
        let origin = try MissOrigin()
        defer { origin.stop() }
        let (client, transport) = (HTTPClient(eventLoopGroupProvider: .singleton), NIOTransport())
        defer { try? client.syncShutdown() }
        let authority = String(origin.base.dropFirst("http://".count))
        let ours = Meter(isRepeating: false) { number in
            let head = HTTPRequest(
                method: .get,
                scheme: "http",
                authority: authority,
                path: "/small/\(number)"
            )
            try await check(collect(transport.send(TransportRequest(head: head)).body))
        }
        let bare = Meter(isRepeating: false) { [base = origin.base] number in
            let request = HTTPClientRequest(url: "\(base)/small/\(number)")
            let response = try await client.execute(request, timeout: .seconds(30))
            try await check(response.body.collect(upTo: 2 << 20).readableBytes)
        }
        let row = Row(
            name: name,
            target: 0.5,
            count: 4000,
            contenders: [
                Contender("the transport") { ours.run($0) },
                Contender("AsyncHTTPClient") { bare.run($0) },
            ]
        )
        report.outcomes.append(Harness(rounds: max(3, min(rounds, 15))).measure(row))
        report.processorTime = [
            ("the transport", ours.processorTime), ("AsyncHTTPClient", bare.processorTime),
        ]
        try Blocking.run { await transport.shutdown() }
        return report
    }

    private static func collect(_ body: any TransportBody) async throws -> Int {
        var count = 0
        while let chunk = try await body.next() { count += chunk.count }
        return count
    }

    private static func check(_ length: Int) throws {
        guard length == 4096 else { throw BenchFailure("a body of \(length) bytes") }
    }
}
