import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Which transfers a reader joins", .tags(.realTime), .timeLimit(.minutes(10)))
struct GapFetcherJoiningTests {
    /// What the disk refuses goes to one reader. One that was left out fetches alone; if others
    /// could join that transfer they might be first again, until it gives up at a healthy origin.
    @Test("A transfer for one reader alone is not joined by others, and one for all is")
    func alone() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 1 << 20, cacheControl: "max-age=60")
            let gate = OriginGate()
            fixture.origin.serve("/film", film, OriginScript(.wait(for: gate, after: 100_000)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                defer { gate.open() }
                let response = try await cache.response(for: request)
                let body = try #require(response.body.source.fetching)
                let fetcher = body.fetcher
                let sole = fetcher.join(body.entry, at: 1 << 19, limit: 1 << 20, isExclusive: true)
                #expect(sole.isFirst)
                try await waitForHead(of: sole, fetcher.shared)
                // Ahead of both, so that neither has passed it.
                let other = fetcher.join(body.entry, at: 800_000, limit: 1 << 20)
                #expect(other.transfer != sole.transfer)
                #expect(!other.isFirst)
                gate.open()
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    private func waitForHead(of transfer: Subscription, _ shared: SharedTransfers) async throws {
        let context = try #require(transfer.context)
        while true {
            let seen = shared.signal.version
            if context.outcome != nil { return }
            await shared.signal.wait(after: seen)
        }
    }
}
