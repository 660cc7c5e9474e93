import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct SharedTransferTests {
    private static let length: Int64 = 12 << 20

    @Test("Two readers that begin far apart in something new fill one entry")
    func twoReadersFarApart() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: Self.length, cacheControl: "max-age=60")
            let gate = OriginGate()
            let stored = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/film", film, .first(2, stored))
            let whole = try fixture.request("/film")
            var part = whole
            part.range = .bounded(10 << 20..<11 << 20)
            let tail = part
            try await fixture.withCache { cache in
                let events = cache.events()
                var starts = events.makeAsyncIterator()
                func waitForStart() async {
                    while let event = await starts.next() {
                        if case .downloadStarted = event.kind { return }
                    }
                }
                async let second = cache.data(for: tail)
                await waitForStart()
                // Nothing is known yet of what the first one brings.
                async let first = cache.data(for: whole)
                await waitForStart()
                gate.open()
                #expect(try await firstDifference(first, film.allBytes) == nil)
                #expect(
                    try await firstDifference(second, film.allBytes[10 << 20..<11 << 20]) == nil
                )
                let entry = try #require(try await cache.entry(for: whole))
                #expect(entry.isComplete)
            }
            // Both were asked, in whatever order they arrived.
            #expect(Set(fixture.origin.log.exchanges.prefix(2).map(\.status)) == [206, 200])
        }
    }

    @Test("A reload does not disturb a reader")
    func aReloadLeavesReadersAlone() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: Self.length, cacheControl: "max-age=60")
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 1 << 20)))
            let request = try fixture.request("/film")
            var reload = request
            reload.policy = .reload
            let again = reload
            // The first response waits for as long as the reload takes.
            try await fixture.withCache {
                $0.timeout = .seconds(300)
            } _: { cache in
                let reading = try await cache.response(for: request)
                let first = try #require(try await reading.body.source.next())
                #expect(try await firstDifference(cache.data(for: again), film.allBytes) == nil)
                gate.open()
                let rest = try await reading.body.collect()
                #expect(firstDifference(first + rest, film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    @Test("A later reader shares the transfer of a body that has no validator")
    func aBodyWithoutValidatorIsShared() async throws {
        try await CacheFixture.run { fixture in
            var film = OriginResource.generated(length: 3 << 20, cacheControl: "max-age=60")
            film.entityTag = .none
            film.framing = .chunked
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 1 << 20)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let early = try await cache.response(for: request)
                let first = try #require(try await early.body.source.next())
                let late = try await cache.response(for: request)
                #expect(late.cacheStatus.isCollapsed)
                gate.open()
                #expect(try await firstDifference(late.body.collect(), film.allBytes) == nil)
                let rest = try await early.body.collect()
                #expect(firstDifference(first + rest, film.allBytes) == nil)
                #expect(cache.statistics.downloadsShared == 1)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("The first request of a download may leave it to those that came later")
    func theLeaderHandsOver() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 3 << 20, cacheControl: "max-age=60")
            let gate = OriginGate()
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 1 << 20)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                var leader: CacheResponse? = try await cache.response(for: request)
                _ = try await leader?.body.source.next()
                let follower = try await cache.response(for: request)
                let first = try #require(try await follower.body.source.next())
                async let rest = follower.body.collect()
                leader = nil
                gate.open()
                #expect(try await firstDifference(first + rest, film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count <= 2)
        }
    }

    @Test("A 304 is an answer only about what was asked")
    func confirmationsAreAboutValidators() throws {
        func head(_ tag: String?) -> StoredResponse {
            var fields = HTTPFields()
            fields[.eTag] = tag
            return StoredResponse(
                status: 200,
                fields: fields,
                requestTime: .init(seconds: 0),
                responseTime: .init(seconds: 0),
                origin: .init(url: "http://a/")
            )
        }
        #expect(head("\"1\"").hasValidators(of: head("\"1\"")))
        #expect(!head("\"1\"").hasValidators(of: head("\"2\"")))
        #expect(!head(nil).hasValidators(of: head(nil)))
    }
}
