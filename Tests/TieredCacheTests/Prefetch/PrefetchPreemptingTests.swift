import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// What is prefetched is never at the cost of what is played, even where it holds every slot.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetchPreemptingTests {
    @Test("Six prefetches that hold all slots give way to a player, and lose no byte")
    func sixPrefetches() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: "max-age=600")
            let gate = OriginGate()
            for item in 0..<6 {
                fixture.origin.serve(
                    "/\(item)",
                    film,
                    OriginScript(.wait(for: gate, after: 100_000))
                )
            }
            fixture.origin.serve("/playing", film)
            try await fixture.withCache {
                $0.timeout = .seconds(3000)
            } _: { cache in
                let requests = try (0..<6).map { try fixture.request("/\($0)") }
                let prefetches = requests.map { request in
                    Task { try await cache.prefetch(request) }
                }
                await fixture.origin.waitUntil { log in
                    (0..<6).allSatisfy { log.bodyBytesWritten(for: "/\($0)") >= 100_000 }
                }
                var playing = try fixture.request("/playing")
                playing.priority = .playing
                #expect(try await firstDifference(cache.data(for: playing), film.allBytes) == nil)
                gate.open()
                for prefetch in prefetches { _ = try await prefetch.value }
                for item in 0..<6 {
                    #expect(fixture.origin.log.exchanges(for: "/\(item)").count == 1)
                    #expect(fixture.origin.log.bodyBytesWritten(for: "/\(item)") == 4 << 20)
                }
            }
        }
    }
}
