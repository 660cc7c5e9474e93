import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite("Seeks beyond the end", .tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerSeekTests {
    @Test("A seek beyond the end of something new is answered as the origin answers it, at once")
    func coldSeeksBeyondTheEnd() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(40_000_000))
            for range in ["80000000-", "80000000-80000009"] {
                let answer = try await fixture.ask("/a.mp4", "Range: bytes=\(range)")
                #expect(answer.status == 416)
                #expect(answer["content-range"] == "bytes */40000000")
            }
            let exchanges = fixture.origin.log.exchanges(for: "/a.mp4")
            #expect(exchanges.map(\.status) == [416, 416])
        }
    }

    @Test("A film that grows is played on where it ended, once its old length is stale")
    func growingFilms() async throws {
        for fields in ["max-age=60", "max-age=10, stale-while-revalidate=3600"] {
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            try await ProxyFixture.run(cacheTime: time) { fixture in
                func serve(_ length: Int64) {
                    fixture.origin.serve("/a.mp4", .generated(length: length, cacheControl: fields))
                }
                serve(300_000)
                #expect(try await fixture.ask("/a.mp4").body.count == 300_000)
                let asked = fixture.requests("/a.mp4")
                let beyond = "Range: bytes=300000-"
                #expect(try await fixture.ask("/a.mp4", beyond).status == 416)
                #expect(fixture.requests("/a.mp4") == asked, "it is fresh")
                time.advance(by: .seconds(61))
                // It has not grown yet.
                let same = try await fixture.ask("/a.mp4", beyond)
                #expect(same.status == 416 && same["content-range"] == "bytes */300000")
                #expect(fixture.requests("/a.mp4") == asked + 1)
                serve(500_000)
                let more = try await fixture.ask("/a.mp4", beyond)
                #expect(more.status == 206)
                #expect(more["content-range"] == "bytes 300000-499999/500000")
                let grown = OriginResource.generated(length: 500_000).generatedBody
                #expect(firstDifference(more.body, grown?.bytes(in: 300_000..<500_000)) == nil)
            }
        }
    }
}
