import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Rows 1 to 14 of the table over real sockets: bodies, parts, and all instead of a part.
@Suite("Rows over sockets: parts", .tags(.realTime), .timeLimit(.minutes(10)))
struct PartialRowsSocketTests {
    private var fixture = RowFixture()
    private var film: OriginResource { fixture.film }

    @Test("Row 1: F, 200 framed")
    func row1() async throws {
        try await fixture.fetch().expectFilm(film, requests: 1)
    }

    @Test("Row 2: F, 200 delimited by close; complete, since nothing was wrong with the close")
    func row2() async throws {
        var fixture = fixture
        fixture.film.framing = .close
        try await fixture.fetch().expectFilm(film, requests: 1)
    }

    @Test("Row 3: F, 206 unasked: asked once more, past caches")
    func row3() async throws {
        let unasked = fixture.part(
            0..<1000,
            "Content-Range: bytes 0-999/400000",
            "Content-Length: 1000"
        )
        let outcome = try await fixture.fetch(unasked)
        outcome.expectFilm(film, requests: 2)
        #expect(outcome.exchanges.last?.fields[.cacheControl] == "no-cache")
        let twice = try await fixture.fetch(unasked, unasked)
        #expect(twice.error?.code == .originFailed)
        #expect(twice.exchanges.count == 2)
    }

    @Test("Row 4: R, 206 that agrees: goes on, every byte once")
    func row4() async throws {
        let outcome = try await fixture.resume()
        outcome.expectFilm(film, requests: 1)
        #expect(outcome.ranges == ["bytes=131072-399999"])
        #expect(outcome.exchanges.first?.fields[.ifRange] == film.entityTagValue)
        #expect(outcome.exchanges.first?.bodyBytesWritten == RowFixture.length - RowFixture.stored)
    }

    @Test("Row 5: R, 206 with less than asked: the rest is asked for")
    func row5() async throws {
        let less = fixture.part(
            131_072..<200_000,
            "Content-Range: bytes 131072-199999/400000",
            "Content-Length: 68928"
        )
        let outcome = try await fixture.resume(less)
        outcome.expectFilm(film, requests: 2)
        #expect(outcome.ranges.last == "bytes=200000-399999")
    }

    @Test("Row 6: R, 206 of unknown complete length")
    func row6() async throws {
        let unknown = OriginBehaviour.lying([.contentRange: "bytes 131072-399999/*"])
        try await fixture.resume(unknown).expectFilm(film, requests: 1)
    }

    @Test("Row 7: R, 206 of another range")
    func row7() async throws {
        let shifted = fixture.part(
            131_073..<131_100,
            "Content-Range: bytes 131073-131099/400000",
            "Content-Length: 27"
        )
        try await fixture.resume(shifted).expectRestart(film)
    }

    @Test("Row 8: R, 206 with another tag or length: the representation changed, all of it again")
    func row8() async throws {
        let range = "Content-Range: bytes 131072-131081/400000"
        let longer = "Content-Range: bytes 131072-131081/400001"
        let length = "Content-Length: 10"
        for lie in [
            fixture.part(131_072..<131_082, tag: "\"other\"", range, length),
            fixture.part(131_072..<131_082, longer, length),
        ] {
            let outcome = try await fixture.resume(lie) { $0.version = 2 }
            outcome.expectChange(to: fixture.changed)
        }
    }

    @Test(
        "Row 8: R, 206 of another length, and then all of it with the tag and length that are stored"
    )
    func row8Contradiction() async throws {
        // The tag is wrong for one of the two: nothing of what is stored may be joined to it.
        let lie = fixture.part(
            131_072..<131_082,
            "Content-Range: bytes 131072-131081/400001",
            "Content-Length: 10"
        )
        let tag = try #require(film.entityTagValue)
        var changed = fixture.changed
        changed.entityTag = .custom(tag)
        let outcome = try await fixture.resume(lie) {
            $0.version = 2
            $0.entityTag = .custom(tag)
        }
        #expect(firstDifference(outcome.data, changed.allBytes) == nil)
        #expect(outcome.stored == RowFixture.length)
        #expect(outcome.ranges.prefix(2) == ["bytes=131072-399999", nil])
    }

    @Test("Row 9: R, 206 without the tag: believed, since If-Range vouches for it")
    func row9() async throws {
        let untagged = OriginBehaviour.faithful.with { $0.omissions = [.eTag] }
        try await fixture.resume(untagged).expectFilm(film, requests: 1)
    }

    @Test(
        "Row 10: R, 206 whose range is missing or impossible",
        arguments: ["bytes 5-1/9", "items 0-1/2", "bytes 131072-399999/3", "x", nil]
    )
    func row10(range: String?) async throws {
        let lie = OriginBehaviour.faithful.with { behaviour in
            if let range {
                behaviour.overrides[.contentRange] = range
            } else {
                behaviour.omissions = [.contentRange]
            }
        }
        try await fixture.resume(lie).expectRestart(film)
    }

    @Test("Row 11: R, 206 in several parts")
    func row11() async throws {
        let type = OriginBehaviour.lying([.contentType: "multipart/byteranges; boundary=x"])
        try await fixture.resume(type).expectRestart(film)
    }

    @Test("Row 12: R, 206 of a coded representation")
    func row12() async throws {
        let coded = OriginBehaviour.lying([.contentEncoding: "gzip"])
        try await fixture.resume(coded).expectRestart(film)
    }

    @Test("Row 13: R, 200: this body is the new representation, and is not asked for again")
    func row13Changed() async throws {
        let outcome = try await fixture.resume { $0.version = 2 }
        #expect(firstDifference(outcome.data, fixture.changed.allBytes) == nil)
        #expect(outcome.stored == RowFixture.length)
        // The reader has bytes of the old one, and leaves; the next one goes on with the response.
        #expect(outcome.exchanges.map(\.status) == [200])
    }

    @Test("Row 13: R, 200 of the same representation: the same bytes again, joined to nothing")
    func row13Same() async throws {
        let outcome = try await fixture.resume(.ignoringRange)
        outcome.expectFilm(film, requests: 1)
        #expect(outcome.exchanges.map(\.status) == [200])
    }

    @Test("Row 14: S, 200: one stream of all of it, and no segments there for an hour")
    func row14() async throws {
        let outcome = try await SegmentFixture.run(.ignoringRange)
        #expect(outcome.isWhole)
        #expect(outcome.limits.contains(.withoutSegments))
    }
}

/// A large job that is fetched in two segments, the second of which meets a row's response.
struct SegmentFixture {
    let isWhole: Bool
    let limits: HostTraits.Limits
    let exchanges: [OriginExchange]

    static func run(_ row: OriginBehaviour) async throws -> SegmentFixture {
        var result: SegmentFixture?
        let film = OriginResource.generated(
            length: 2 * JobSegments.minimumLength,
            cacheControl: "max-age=3600"
        )
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            // The first response waits, so that the second request is that of the segment.
            let first = OriginBehaviour.wait(for: gate, after: 1 << 20)
            fixture.origin.serve("/film", film, OriginScript.first(1, first).then(1, row))
            let request = try fixture.request("/film")
            result = try await fixture.withCache {
                $0.maximumSegments = 2
            } _: { cache in
                let handle = try await cache.downloads.start(request)
                await fixture.origin.waitUntil { $0.exchanges.count >= 2 }
                gate.open()
                try await handle.wait()
                let data = try await cache.data(for: request)
                let now = cache.engine.time.monotonicTime()
                return SegmentFixture(
                    isWhole: data == film.allBytes,
                    limits: cache.engine.origins.hosts.withLock {
                        $0.limits(of: request.target.origin, now: now)
                    },
                    exchanges: fixture.origin.log.exchanges
                )
            }
        }
        return try #require(result)
    }
}
