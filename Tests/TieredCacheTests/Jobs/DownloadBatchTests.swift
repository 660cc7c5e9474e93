import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Batches of downloads", .tags(.realTime), .timeLimit(.minutes(10)))
struct DownloadBatchTests {
    private static let count = 20
    private static let length: Int64 = 100_000

    private func requests(_ fixture: CacheFixture, _ gate: OriginGate) throws -> [CacheRequest] {
        try (0..<Self.count).map { index in
            let film = OriginResource.generated(
                length: Self.length,
                seed: UInt64(index),
                cacheControl: "max-age=3600"
            )
            fixture.origin.serve(
                "/\(index)",
                film,
                OriginScript(.wait(for: gate, after: 1000))
            )
            return try fixture.request("/\(index)")
        }
    }

    @Test("Added, paused, resumed and acknowledged as one, with one progress that ends")
    func asOne() async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            let requests = try requests(fixture, gate)
            try await fixture.withCache { cache in
                let batch = try await cache.downloads.start(requests)
                #expect(batch.status.downloads == Self.count && !batch.status.isEnd)
                await batch.pause()
                #expect(batch.downloads.allSatisfy { $0.status.state == .paused })
                let progress = batch.progress
                gate.open()
                await batch.resume()
                var last = DownloadBatch.Status([])
                for await status in progress {
                    #expect(status.downloads == Self.count)
                    #expect(status.finished >= last.finished)
                    last = status
                }
                #expect(last.isEnd && last.finished == Self.count && last.failed == 0)
                #expect(last.bytes == Int64(Self.count) * Self.length && last.total == last.bytes)
                #expect(last.source == .network)
                #expect(try await cache.downloads.all().count == Self.count)
                await batch.acknowledge()
                #expect(try await cache.downloads.all().isEmpty)
                #expect(try await cache.entry(for: requests[0])?.isComplete == true)
            }
        }
    }

    @Test("Cancelled with its bytes and removed as one; nothing is left")
    func removed() async throws {
        try await CacheFixture.run { fixture in
            let requests = try requests(fixture, OriginGate())
            try await fixture.withCache { cache in
                let batch = try await cache.downloads.start(requests)
                await fixture.origin.waitUntil { !$0.exchanges.isEmpty }
                await batch.cancel(keepingBytes: false)
                #expect(batch.status.failed == Self.count && batch.status.isEnd)
                // A cancelled job stays until it is removed.
                #expect(try await cache.downloads.all().count == Self.count)
                await batch.remove()
                #expect(try await cache.downloads.all().isEmpty)
                for request in requests { #expect(try await cache.entry(for: request) == nil) }
            }
            let left = try await fixture.withCache { try await $0.downloads.all().count }
            #expect(left == 0)
        }
    }

    @Test("A batch with a request that cannot be a download starts none")
    func startsNone() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            let film = try fixture.request("/film")
            let unusable = CacheRequest(try #require(URL(string: "file:///film")), key: "film")
            let head = try CacheRequest(fixture.origin.url("/film"), method: .head)
            let others = [(unusable, CacheError.Code.invalidURL), (head, .invalidArgument)]
            for (other, code) in others {
                try await fixture.withCache { cache in
                    let error = await #expect(throws: CacheError.self) {
                        try await cache.downloads.start([film, other])
                    }
                    #expect(error?.code == code)
                    let all = try await cache.downloads.all()
                    #expect(all.isEmpty)
                }
            }
            #expect(fixture.origin.log.exchanges.isEmpty)
        }
    }
}
