import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// Redirects are the proxy's business: a player never sees one.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerRedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308])
    func redirectsAreFollowedAndNotShown(status: Int) async throws {
        try await ProxyFixture.run { fixture in
            let resource = OriginResource.fresh(300_000)
            fixture.origin.serve(
                "/a.mp4",
                OriginScript(.redirect(to: fixture.origin.url("/b.mp4"), status: status))
            )
            fixture.origin.serve("/b.mp4", resource)
            let whole = try #require(resource.generatedBody).bytes(in: 0..<300_000)
            for range in [0..<300_000, 5..<299_999] {
                let answer = try await fixture.ask(
                    "/a.mp4",
                    "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"
                )
                #expect(answer.status == 206 && answer["location"] == nil)
                #expect(firstDifference(answer.body, Array(whole[range])) == nil)
            }
            // Stored and fresh: no origin is asked, not even for the redirect.
            let asked = fixture.requests("/a.mp4") + fixture.requests("/b.mp4")
            #expect(try await firstDifference(fixture.ask("/a.mp4").body, whole) == nil)
            #expect(fixture.requests("/a.mp4") + fixture.requests("/b.mp4") == asked)
        }
    }

    @Test("The cookie of a redirect is sent to its target, and to nobody else")
    func cookies() async throws {
        try await ProxyFixture.run { fixture in
            let there = OriginBehaviour.redirect(to: "/b.mp4").with {
                $0.overrides[.setCookie] = "k=1; Path=/"
            }
            fixture.origin.serve("/a.mp4", OriginScript(there))
            fixture.origin.serve("/b.mp4", .fresh(300_000), .first(1, .cut(after: 100_000)))
            fixture.origin.serve("/c.mp4", .fresh(1000))
            let answer = try await fixture.ask("/a.mp4")
            #expect(answer.status == 200 && answer.body.count == 300_000)
            #expect(answer["set-cookie"] == nil)
            _ = try await fixture.ask("/c.mp4")
            let cookies = { (path: String) in
                Set(fixture.origin.log.exchanges(for: path).map { $0.fields[.cookie] })
            }
            #expect(cookies("/a.mp4") == [nil] && cookies("/c.mp4") == [nil])
            #expect(cookies("/b.mp4") == ["k=1"] && fixture.requests("/b.mp4") >= 2)
        }
    }

    @Test("A target in Latin-1 is asked for by its bytes")
    func latin1() async throws {
        try await ProxyFixture.run { fixture in
            let head = "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n"
            let redirect = Array("\(head)Location: /caf".utf8) + [0xE9] + Array(".mp4\r\n\r\n".utf8)
            let raw = OriginBehaviour.faithful.with { $0.response = .raw(redirect) }
            fixture.origin.serve("/a.mp4", OriginScript(raw))
            fixture.origin.serve("/caf%E9.mp4", .fresh(1000))
            let answer = try await fixture.ask("/a.mp4")
            #expect(answer.status == 200 && answer.body.count == 1000)
        }
    }

    @Test(
        "A target that has expired is asked for anew where the redirect was",
        arguments: [401, 403, 410]
    )
    func expiredTargets(status: Int) async throws {
        try await ProxyFixture.run { fixture in
            let film = OriginResource.fresh(300_000)
            fixture.origin.serve(
                "/a.mp4",
                OriginScript(.redirect(to: fixture.origin.url("/b.mp4")))
            )
            let script = OriginScript.first(1, .cut(after: 100_000)).then(1, .status(status))
            fixture.origin.serve("/b.mp4", film, script.then(.faithful))
            let answer = try await fixture.ask("/a.mp4")
            #expect(answer.status == 200)
            #expect(firstDifference(answer.body, film.generatedBody?.bytes(in: 0..<300_000)) == nil)
            #expect(fixture.requests("/a.mp4") == fixture.requests("/b.mp4"))
            #expect(fixture.requests("/b.mp4") >= 3)
        }
    }

    @Test func aRedirectThatMustNotBeStoredIsNotAskedForWhileTheBytesAreStored() async throws {
        try await ProxyFixture.run { fixture in
            // It closes: not to say so would be a lost connection for the next request, which is
            // to be made again then, from the beginning.
            let redirect =
                "HTTP/1.1 302 Found\r\nLocation: \(fixture.origin.url("/b.mp4"))\r\n"
                + "Cache-Control: no-store\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            fixture.origin.serve("/a.mp4", OriginScript(.raw(redirect)))
            fixture.origin.serve("/b.mp4", .fresh(10_000))
            for _ in 0..<4 {
                let answer = try await fixture.ask("/a.mp4")
                #expect(answer.body.count == 10_000)
            }
            #expect(fixture.requests("/a.mp4") == 1 && fixture.requests("/b.mp4") == 1)
        }
    }
}
