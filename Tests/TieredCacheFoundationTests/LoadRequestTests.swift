import Foundation
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionTests {
    @Suite(
        "URLSession with a cache: what is asked for",
        .tags(.realTime),
        .timeLimit(.minutes(1))
    )
    struct LoadRequestTests {
        @Test("what was got with credentials answers no request without them")
        func credentials() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("mine", cacheControl: "max-age=60"))
                var mine = try fixture.request("/a")
                mine.setValue("Bearer x", forHTTPHeaderField: "Authorization")
                _ = try await fixture.load(mine)
                _ = try await fixture.load(mine)
                #expect(fixture.requests(for: "/a") == 1)
                _ = try await fixture.load(fixture.request("/a"))
                #expect(fixture.requests(for: "/a") == 2)
            }
        }

        @Test("`only-if-cached` of the application's own is answered 504, without the origin")
        func onlyIfCached() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("a"))
                var request = try fixture.request("/a")
                request.setValue("only-if-cached", forHTTPHeaderField: "Cache-Control")
                #expect(try await fixture.load(request).response.statusCode == 504)
                #expect(fixture.requests(for: "/a") == 0)
            }
        }

        @Test("a cookie that a redirect sets is sent to where it leads, and no further")
        func cookiesOfRedirects() async throws {
            try await SessionFixture.run { fixture in
                var behaviour = OriginBehaviour.redirect(to: "/b")
                behaviour.overrides[.setCookie] = "a=1"
                fixture.origin.serve("/a", OriginScript(behaviour))
                fixture.origin.serve("/b", .text("there"))
                #expect(try await fixture.load(fixture.request("/a")).text == "there")
                _ = try await fixture.load(fixture.request("/b"))
                let cookies = fixture.origin.log.exchanges(for: "/b").map { $0.fields[.cookie] }
                #expect(cookies == ["a=1", nil])
            }
        }

        @Test("requests have the fields of the cache where they have none of their own")
        func defaultFields() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("a"))
                var own = try fixture.request("/a")
                own.setValue("Own/1", forHTTPHeaderField: "User-Agent")
                own.setValue("gzip", forHTTPHeaderField: "Accept-Encoding")
                _ = try await fixture.load(fixture.request("/a"))
                _ = try await fixture.load(own)
                let sent = fixture.origin.log.exchanges(for: "/a").map(\.fields)
                #expect(sent.map { $0[.userAgent] } == ["TieredCache", "Own/1"])
                #expect(sent.map { $0[.accept] } == ["*/*", "*/*"])
                #expect(sent.map { $0[.acceptEncoding] } == ["identity", "identity"])
            }
        }
    }
}
