import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A transfer whose response is at hand leaves its caller's thread before it waits for the disk.
@Suite("Callers' threads", .timeLimit(.minutes(1)))
struct CallersThreadTests {
    /// A script whose exchanges need no tasks of their own, which would leave the thread.
    private struct AttachedTransport: CancellableTransport {
        let script: ScriptedTransport

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            try await script.send(request)
        }

        func shutdown() async { await script.shutdown() }
    }

    @Test("bytes that come again are compared with the stored ones on a thread of the cache's")
    func comparison() async throws {
        let film = (0..<100_000).map { UInt8($0 % 251) }
        let transport = ScriptedTransport { request, index in
            guard request.head.path != "/film" else {
                let location = index == 0 ? "/first" : "/second"
                return ScriptedResponse(status: 302, fields: [.location: location], steps: [])
            }
            let range = request.head.headerFields[.range].flatMap { RangeRequest($0) }?.specs.first
            let wanted = range?.resolved(completeLength: 100_000) ?? 0..<100_000
            let fields: HTTPFields = [
                .eTag: "\"1\"", .cacheControl: "max-age=600", .acceptRanges: "bytes",
                .contentLength: "\(wanted.count)",
                .contentRange: "bytes \(wanted.lowerBound)-\(wanted.upperBound - 1)/100000",
            ]
            return ScriptedResponse(
                status: 206,
                fields: fields,
                steps: [.bytes(Array(film[Int(wanted.lowerBound)..<Int(wanted.upperBound)]))]
            )
        }
        try await CacheFixture.run { fixture in
            try await fixture.withCache {
                $0.transport = AttachedTransport(script: transport)
            } _: { cache in
                let request = try CacheRequest("http://example.com/film")
                _ = try await cache.bytes(for: request, range: 0..<65_536).collect()
                // A debug build traps where this thread would wait for the disk.
                let reader = try await cache.reader(for: request)
                let bytes = try await reader.bytes(at: 70_000, count: 100)
                #expect(bytes == film[70_000..<70_100].map(\.self))
                #expect(transport.requests.count == 4)
            }
        }
    }
}
