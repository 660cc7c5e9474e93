import AsyncHTTPClient
import FoundationEssentials
import HTTPTypes
import NIOCore
import NIOHTTP1
import TestParts
import Testing
import TieredCache
import TieredCacheHTTPClient
import TieredCacheTesting

@Suite("AsyncHTTPClient with a cache: what is cached", .tags(.realTime), .timeLimit(.minutes(1)))
struct CachingHTTPClientTests {
    @Test("a fresh response answers again, and says so")
    func hit() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("first", cacheControl: "max-age=60"))
            let first = try await fixture.execute("/a")
            let second = try await fixture.execute("/a")
            #expect([first.text, second.text] == ["first", "first"])
            #expect(second.response.status == .ok)
            #expect(second.response.headers["Content-Type"] == ["text/plain"])
            #expect(first.response.cacheStatus.contains("fwd=uri-miss"))
            #expect(second.response.cacheStatus.contains("hit"))
            #expect(fixture.requests(for: "/a") == 1)
            #expect(second.response.history.count == 1)
            #expect(second.response.url?.absoluteString == fixture.origin.url("/a"))
        }
    }

    @Test("HEAD is answered from the response to GET")
    func head() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("first", cacheControl: "max-age=60"))
            _ = try await fixture.execute("/a")
            let head = try await fixture.execute("/a", method: .HEAD)
            #expect(head.text.isEmpty)
            #expect(head.response.headers["Content-Length"] == ["5"])
            #expect(fixture.requests(for: "/a") == 1)
        }
    }

    @Test("a stale response is confirmed by its tag or its date, and the caller gets a 200")
    func confirmation() async throws {
        try await ClientFixture.run { fixture in
            var dated = OriginResource.text("dated", cacheControl: "no-cache")
            dated.entityTag = .none
            dated.lastModified = "Mon, 05 Jan 2026 00:00:00 GMT"
            fixture.origin.serve("/dated", dated)
            fixture.origin.serve("/tagged", .text("tagged", cacheControl: "no-cache"))
            for path in ["/dated", "/tagged"] {
                _ = try await fixture.execute(path)
                let again = try await fixture.execute(path)
                #expect(again.response.status == .ok)
                #expect("/" + again.text == path)
                #expect(fixture.origin.log.exchanges(for: path).map(\.status) == [200, 304])
            }
            let dates = fixture.origin.log.exchanges(for: "/dated").map {
                $0.fields[.ifModifiedSince]
            }
            #expect(dates == [nil, "Mon, 05 Jan 2026 00:00:00 GMT"])
        }
    }

    @Test("an error that the cache has stored for itself, without its body, is asked for anew")
    func errorsOfTheCache() async throws {
        try await ClientFixture.run { fixture in
            var gone = OriginBehaviour.status(404)
            gone.overrides[.cacheControl] = "max-age=60"
            fixture.origin.serve("/a", OriginScript(gone))
            let own = CacheRequest(try #require(URL(string: fixture.origin.url("/a"))))
            #expect(try await fixture.cache.response(for: own).status == .notFound)
            for _ in 0..<2 {
                let answer = try await fixture.execute("/a")
                #expect(answer.response.status == .notFound)
                #expect(answer.text == "status 404\n")
            }
            #expect(fixture.requests(for: "/a") == 2)
        }
    }

    @Test("conditions and ranges of the caller are answered from what is stored")
    func conditions() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", .text("0123456789", cacheControl: "max-age=60"))
            let tag = try #require(
                try await fixture.execute("/a").response.headers.first(name: "ETag")
            )
            let same = try await fixture.execute("/a", headers: ["If-None-Match": tag])
            let part = try await fixture.execute("/a", headers: ["Range": "bytes=2-4"])
            #expect(same.response.status == .notModified)
            #expect(part.response.status == .partialContent)
            #expect(part.text == "234")
            #expect(part.response.headers["Content-Range"] == ["bytes 2-4/10"])
            #expect(fixture.requests(for: "/a") == 1)
        }
    }

    @Test("requests for one URL at the same time share one request to the origin")
    func oneRequest() async throws {
        try await ClientFixture.run { fixture in
            let gate = OriginGate()
            fixture.origin.serve(
                "/a",
                .text("shared", cacheControl: "max-age=60"),
                OriginScript(OriginBehaviour.wait(for: gate, after: 3))
            )
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<8 {
                    group.addTask { try await fixture.execute("/a").text }
                }
                await fixture.origin.waitUntil { $0.exchanges(for: "/a").count == 1 }
                gate.open()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "shared", count: 8))
            #expect(fixture.requests(for: "/a") == 1)
        }
    }

    @Test("a body larger than memory's share comes in order, in pieces")
    func largeBody() async throws {
        try await ClientFixture.run { fixture in
            let length: Int64 = 24 << 20
            fixture.origin.serve("/film", .generated(length: length, cacheControl: "max-age=60"))
            let expected = GeneratedBody(seed: 1, length: length)
            let request = HTTPClientRequest(url: fixture.origin.url("/film"))
            let response = try await fixture.client.execute(request, timeout: .seconds(30))
            var offset: Int64 = 0
            var longest = 0
            for try await chunk in response.body {
                let isRight = chunk.withUnsafeReadableBytes { expected.matches($0, at: offset) }
                try #require(isRight, "at \(offset)")
                offset += Int64(chunk.readableBytes)
                longest = max(longest, chunk.readableBytes)
            }
            #expect(offset == length)
            #expect(longest <= 1 << 20)
        }
    }

    @Test("a redirect is followed as the client follows it, and each step is cached by itself")
    func redirect() async throws {
        try await ClientFixture.run { fixture in
            fixture.origin.serve("/a", OriginScript(.redirect(to: "/b?x=1", status: 301)))
            fixture.origin.serve("/b", .text("there", cacheControl: "max-age=60"))
            let first = try await fixture.execute("/a")
            let second = try await fixture.execute("/a")
            #expect([first.text, second.text] == ["there", "there"])
            #expect(first.response.history.map(\.responseHead.status) == [.movedPermanently, .ok])
            #expect(second.response.url?.absoluteString == fixture.origin.url("/b?x=1"))
            #expect(fixture.requests(for: "/b") == 1)
        }
    }

    @Test("more redirects than allowed fail as in the client; without any, each is a response")
    func redirectLimits() async throws {
        try await ClientFixture.run(maximumRedirects: 1) { fixture in
            fixture.origin.serve("/a", OriginScript(.redirect(to: "/b")))
            fixture.origin.serve("/b", OriginScript(.redirect(to: "/c")))
            fixture.origin.serve("/c", .text("there"))
            await #expect(throws: HTTPClientError.redirectLimitReached) {
                try await fixture.execute("/a")
            }
            let direct = CachingHTTPClient(cache: fixture.cache, maximumRedirects: 0)
            let request = HTTPClientRequest(url: fixture.origin.url("/a"))
            let response = try await direct.execute(request, timeout: .seconds(30))
            #expect(response.status == .found)
            #expect(response.headers["Location"] == ["/b"])
        }
    }

    @Test("credentials stay with the first origin")
    func credentials() async throws {
        try await ClientFixture.run { fixture in
            let other = try await ScriptedOrigin.start()
            other.serve("/b", .text("there"))
            fixture.origin.serve("/a", OriginScript(.redirect(to: other.url("/b"))))
            let headers: HTTPHeaders = ["Authorization": "Bearer x", "Cookie": "a=1", "X-A": "1"]
            #expect(try await fixture.execute("/a", headers: headers).text == "there")
            let sent = try #require(other.log.exchanges(for: "/b").first).fields
            #expect(sent[.authorization] == nil)
            #expect(sent[.cookie] == nil)
            #expect(sent[try #require(HTTPField.Name("X-A"))] == "1")
            await other.stop()
        }
    }
}
