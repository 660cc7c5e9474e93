import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct JobSegmentsTests {
    @Test("Parts are long enough, begin at blocks, and cover all but the first")
    func ranges() {
        let minimum = JobSegments.minimumLength
        #expect(JobSegments.ranges(length: minimum, count: 4).isEmpty)
        #expect(JobSegments.ranges(length: 10 * minimum, count: 1).isEmpty)
        for extra in [0, 1, 70_000] as [Int64] {
            let length = 3 * minimum + extra
            let ranges = JobSegments.ranges(length: length, count: 8)
            #expect(ranges.count == 2)
            #expect(ranges.last?.upperBound == length)
            #expect(ranges[0].upperBound == ranges[1].lowerBound)
            #expect(ranges.allSatisfy { $0.lowerBound % 65_536 == 0 })
        }
    }

    @Test("A large body comes by two requests at once, with If-Match")
    func parallel() async throws {
        try await CacheFixture.run { fixture in
            let length = 2 * JobSegments.minimumLength + 5
            let film = OriginResource.generated(length: length, cacheControl: "max-age=60")
            let gate = OriginGate()
            // The first response waits until the second request has come.
            fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 1 << 20)))
            let request = try fixture.request("/film")
            try await fixture.withCache {
                $0.maximumSegments = 2
            } _: { cache in
                let handle = try await cache.downloads.start(request)
                await fixture.origin.waitUntil { $0.exchanges.count == 2 }
                gate.open()
                try await handle.wait()
                let entry = try #require(try await cache.entry(for: request))
                #expect(entry.isComplete)
                let data = try await cache.data(for: request)
                #expect(firstDifference(data, film.allBytes) == nil)
            }
            let second = fixture.origin.log.exchanges[1]
            #expect(second.fields[.ifMatch] == film.entityTagValue)
            #expect(second.fields[.range] == "bytes=\(length / 2 / 65_536 * 65_536)-\(length - 1)")
        }
    }

    @Test("A reload brings one new generation, by all its requests", arguments: [false, true])
    func reload(isPinned: Bool) async throws {
        try await CacheFixture.run { fixture in
            let length = 2 * JobSegments.minimumLength + 5
            var film = OriginResource.generated(length: length, cacheControl: "max-age=60")
            fixture.origin.serve("/film", film)
            var request = try fixture.request("/film")
            request.options.set(.pinned, to: isPinned)
            try await fixture.withCache {
                $0.maximumSegments = 2
                $0.diskLimit = 256 << 20
            } _: { [request] cache in
                _ = try await cache.prefetch(request)
                film.version = 2
                let gate = OriginGate()
                fixture.origin.serve("/film", film, .first(1, .wait(for: gate, after: 1 << 20)))
                var again = request
                again.policy = .reload
                let before = fixture.origin.log.exchanges.count
                let handle = try await cache.downloads.start(again)
                await fixture.origin.waitUntil { $0.exchanges.count == before + 2 }
                gate.open()
                try await handle.wait()
                let entry = try #require(try await cache.entry(for: request))
                #expect(entry.isComplete && entry.isPinned == isPinned)
                let data = try await cache.data(for: request)
                #expect(firstDifference(data, film.allBytes) == nil)
                let second = fixture.origin.log.exchanges[before + 1]
                #expect(second.fields[.ifMatch] == film.entityTagValue)
            }
        }
    }

    @Test("A digest that is not met fails the job, whichever request brings the last byte")
    func integrity() async throws {
        try await CacheFixture.run { fixture in
            let length = 2 * JobSegments.minimumLength + 5
            let film = OriginResource.generated(length: length, cacheControl: "max-age=60")
            let gate = OriginGate()
            // The second response comes to its end after the first.
            let script = OriginScript.first(1, .faithful).then(1, .wait(for: gate, after: 1 << 20))
            fixture.origin.serve("/film", film, script)
            var request = try fixture.request("/film")
            request.expectedDigests = [
                try #require(ContentDigest(.sha256, bytes: Array(repeating: 7, count: 32)))
            ]
            try await fixture.withCache {
                $0.maximumSegments = 2
            } _: { [request] cache in
                let handle = try await cache.downloads.start(request)
                await fixture.origin.waitUntil {
                    $0.bodyBytesWritten >= JobSegments.minimumLength + 1 << 20
                }
                gate.open()
                await #expect(throws: CacheError.self) { try await handle.wait() }
                #expect(try await cache.entry(for: request)?.isComplete != true)
            }
        }
    }
}
