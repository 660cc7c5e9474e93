import FoundationEssentials
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PassingTests {
    @Test("A body that breaks off before its first byte was read begins anew for the same reader")
    func aBrokenBodyBeginsAnew() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 200_000, cacheControl: "no-store")
            fixture.origin.serve("/page", page, .first(1, .cut(after: 0)))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let response = try await cache.response(for: request)
                #expect(try await firstDifference(response.body.collect(), page.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    @Test("A body that breaks off after its first byte was read is never joined to another")
    func aBrokenBodyIsNotJoined() async throws {
        try await CacheFixture.run { fixture in
            var page = OriginResource.generated(length: 2 << 20, cacheControl: "no-store")
            page.entityTag = .none
            let gate = OriginGate()
            let cut = OriginBehaviour.faithful.with {
                $0.interruptions = [(1 << 20, .wait(gate)), (1 << 20, .cut(.finish))]
            }
            fixture.origin.serve("/page", page, .first(1, cut))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let response = try await cache.response(for: request)
                _ = try await response.body.source.next()
                gate.open()
                let error = await #expect(throws: CacheError.self) {
                    try await response.body.collect()
                }
                #expect(error?.code == .representationChanged)
            }
        }
    }

    @Test("Of many readers of what is not stored each gets the whole body")
    func everybodyGetsTheWholeBody() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 300_000, cacheControl: "no-store")
            fixture.origin.serve("/page", page)
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                try await withThrowingTaskGroup(of: Data.self) { group in
                    for _ in 0..<10 { group.addTask { try await cache.data(for: request) } }
                    for try await bytes in group {
                        #expect(firstDifference(bytes, page.allBytes) == nil)
                    }
                }
                #expect(cache.cachedData(for: request) == nil)
            }
        }
    }

    @Test("A cache without a directory keeps in memory what may be kept, and finds no fault")
    func memoryAlone() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 10_000, cacheControl: "max-age=60")
            fixture.origin.serve("/page", page)
            let request = try fixture.request("/page")
            try await fixture.withCache({ $0.directory = nil }) { cache in
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, page.allBytes) == nil)
                #expect(firstDifference(cache.cachedData(for: request), page.allBytes) == nil)
                #expect(cache.statistics.storageFailures == 0)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }
}
