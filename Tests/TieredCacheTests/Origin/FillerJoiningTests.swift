import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Which transfers a reader joins", .timeLimit(.minutes(10)))
struct FillerJoiningTests {
    /// What the disk refuses goes to one reader. One that was left out fetches alone; if others could
    /// join that transfer they might be first again, until it gives up at a healthy origin.
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
                let body = try #require(response.body.source.filling)
                let filler = body.filler
                let sole = filler.join(body.entry, at: 1 << 19, limit: 1 << 20, isAlone: true)
                #expect(sole.isFirst)
                try await waitForHead(of: sole, filler.fill)
                // Ahead of both, so that neither has passed it.
                let other = filler.join(body.entry, at: 800_000, limit: 1 << 20)
                #expect(other.flight != sole.flight)
                #expect(!other.isFirst)
                gate.open()
                #expect(try await firstDifference(response.body.collect(), film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    private func waitForHead(of flight: Subscription, _ fill: Fill) async throws {
        let report = try #require(flight.report)
        while true {
            let seen = fill.signal.version
            if report.answer != nil { return }
            await fill.signal.wait(after: seen)
        }
    }
}
