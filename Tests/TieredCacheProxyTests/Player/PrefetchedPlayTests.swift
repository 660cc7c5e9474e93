import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// What was fetched before anybody asked is on probation until a player has used it.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetchedPlayTests {
    private static let length: Int64 = 2 << 20

    @Test("What was never used leaves first; what was played stays as long as anything else")
    func probation() async throws {
        try await ProxyFixture.run { fixture in
            let names = ["/old.mp4", "/unused.mp4", "/played.mp4"]
            for name in names { fixture.origin.serve(name, .fresh(Self.length)) }
            func isStored(_ name: String) async throws -> Bool {
                try await fixture.cache.entry(for: CacheRequest(fixture.origin.url(name))) != nil
            }
            func trim() async throws {
                let bytes = try await fixture.cache.usage().bytes
                try await fixture.cache.trim(to: bytes - 1 << 20)
            }
            #expect(try await fixture.ask("/old.mp4").status == 200)
            for name in ["/played.mp4", "/unused.mp4"] {
                _ = try await fixture.cache.prefetch(CacheRequest(fixture.origin.url(name)))
            }
            let asked = fixture.origin.log.exchanges.count
            #expect(try await fixture.ask("/played.mp4", "Range: bytes=0-").status == 206)
            #expect(fixture.origin.log.exchanges.count == asked)
            try await trim()
            #expect(try await isStored("/unused.mp4") == false)
            #expect(try await isStored("/old.mp4"))
            #expect(try await isStored("/played.mp4"))
            try await trim()
            #expect(try await isStored("/old.mp4") == false)
            #expect(try await isStored("/played.mp4"))
        }
    }
}
