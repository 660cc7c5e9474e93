import HTTPCaching
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct PrefetcherTests {
    @Test("The heads of the next items are held when they are played")
    func heads() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            for item in 0..<3 { fixture.origin.serve("/\(item)", film) }
            let requests = try (0..<3).map { try fixture.request("/\($0)") }
            try await fixture.withCache { cache in
                let prefetcher = cache.prefetcher()
                prefetcher.rank(requests)
                await prefetcher.waitUntilIdle()
                let asked = fixture.origin.log.exchanges.count
                #expect(fixture.origin.log.bodyBytesWritten <= 3 * 1_000_000)
                for request in requests {
                    let head = try await cache.bytes(for: request, range: 0..<800_000).collect()
                    #expect(head == film.allBytes.prefix(800_000))
                }
                #expect(fixture.origin.log.exchanges.count == asked)
            }
        }
    }

    @Test("A swipe ends the downloads of what is not next any more")
    func swipe() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            fixture.origin.serve("/old", film, OriginScript(.stall(after: 1000)))
            fixture.origin.serve("/new", film)
            let old = try fixture.request("/old")
            let new = try fixture.request("/new")
            try await fixture.withCache { cache in
                var options = PrefetchOptions()
                options.maximumRunning = 1
                let prefetcher = cache.prefetcher(options: options)
                prefetcher.rank([old])
                await fixture.origin.waitUntil { !$0.exchanges(for: "/old").isEmpty }
                prefetcher.rank([new])
                await fixture.origin.waitUntil { log in
                    log.exchanges(for: "/old").allSatisfy { $0.outcome == .disconnected }
                        && !log.exchanges(for: "/new").isEmpty
                }
                await prefetcher.waitUntilIdle()
                var part = new
                part.range = .bounded(0..<800_000)
                #expect(await cache.contains(part))
            }
        }
    }
}
