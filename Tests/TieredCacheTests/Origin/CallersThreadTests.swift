import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A transfer whose response is at hand leaves its caller's thread before it waits for the disk.
@Suite("Callers' threads", .timeLimit(.minutes(1)))
struct CallersThreadTests {
    @Test("bytes that come again are compared with the stored ones on a thread of the cache's")
    func comparison() async throws {
        let film = (0..<100_000).map { UInt8($0 % 251) }
        let transport = ScriptedTransport { _, index in
            var fields: HTTPFields = [
                .eTag: "\"1\"", .cacheControl: "max-age=600", .acceptRanges: "bytes",
            ]
            // The second time it does not heed the range.
            let bytes = index == 0 ? Array(film[..<65_536]) : film
            fields[.contentLength] = "\(bytes.count)"
            if index == 0 { fields[.contentRange] = "bytes 0-65535/100000" }
            return ScriptedResponse(
                status: index == 0 ? 206 : 200,
                fields: fields,
                steps: [.bytes(bytes)]
            )
        }
        try await CacheFixture.run { fixture in
            try await fixture.withCache {
                $0.transport = transport
            } _: { cache in
                let request = try CacheRequest("http://example.com/film")
                _ = try await cache.bytes(for: request, range: 0..<65_536).collect()
                // A debug build traps where this thread would wait for the disk.
                let reader = try await cache.reader(for: request)
                let bytes = try await reader.bytes(at: 70_000, count: 100)
                #expect(bytes == film[70_000..<70_100].map(\.self))
                #expect(transport.requests.count == 2)
            }
        }
    }
}
