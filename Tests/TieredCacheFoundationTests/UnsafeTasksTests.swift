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
        "URLSession with a cache: what requests past the cache change",
        .tags(.realTime),
        .timeLimit(.minutes(2))
    )
    struct UnsafeTasksTests {
        private static func request(
            _ method: String,
            _ path: String,
            _ fixture: SessionFixture
        ) throws -> URLRequest {
            var request = try fixture.request(path)
            request.httpMethod = method
            if method != "DELETE" { request.httpBody = Data("body".utf8) }
            return request
        }

        @Test(
            "what was stored before is confirmed once, and then used again",
            arguments: ["POST", "PUT", "DELETE", "PATCH"]
        )
        func methods(method: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("stored", cacheControl: "max-age=60"))
                _ = try await fixture.load(fixture.request("/a"))
                _ = try await fixture.load(Self.request(method, "/a", fixture))
                for _ in 0..<3 {
                    #expect(try await fixture.load(fixture.request("/a")).text == "stored")
                }
                let exchanges = fixture.origin.log.exchanges(for: "/a")
                #expect(exchanges.map(\.method) == ["GET", method, "GET"])
                #expect(exchanges.last?.status == 304)
            }
        }

        @Test("an upload task and a delegate are seen as well")
        func upload() async throws {
            let delegate = SessionDelegate()
            try await SessionFixture.run(delegate: delegate) { fixture in
                fixture.origin.serve("/a", .text("stored", cacheControl: "max-age=60"))
                _ = try await fixture.load(fixture.request("/a"))
                var put = try fixture.request("/a")
                put.httpMethod = "PUT"
                fixture.session.uploadTask(with: put, from: Data("new".utf8)).resume()
                #expect(await delegate.all.error == nil)
                _ = try await fixture.load(fixture.request("/a"))
                let methods = fixture.origin.log.exchanges(for: "/a").map(\.method)
                #expect(methods == ["GET", "PUT", "GET"])
            }
        }

        @Test("an error, and an origin that is gone, change nothing")
        func failures() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("stored", cacheControl: "max-age=60"))
                _ = try await fixture.load(fixture.request("/a"))
                fixture.origin.serve("/a", OriginScript(.status(500)))
                let refused = try await fixture.load(Self.request("POST", "/a", fixture))
                #expect(refused.response.statusCode == 500)
                #expect(try await fixture.load(fixture.request("/a")).text == "stored")
                await fixture.origin.stop()
                await #expect(throws: URLError.self) {
                    try await fixture.load(Self.request("POST", "/a", fixture))
                }
                #expect(try await fixture.load(fixture.request("/a")).text == "stored")
            }
        }

        @Test("so is what `Location` names, and what was redirected from", arguments: [201, 303])
        func otherTargets(status: Int) async throws {
            try await SessionFixture.run { fixture in
                for path in ["/form", "/made"] {
                    fixture.origin.serve(path, .text("stored", cacheControl: "max-age=60"))
                    _ = try await fixture.load(fixture.request(path))
                }
                var behaviour = OriginBehaviour.status(status)
                behaviour.overrides[.location] = "/made"
                fixture.origin.serve("/form", OriginScript(behaviour))
                _ = try await fixture.load(Self.request("POST", "/form", fixture))
                fixture.origin.serve("/form", .text("stored", cacheControl: "max-age=60"))
                _ = try await fixture.load(fixture.request("/form"))
                #expect(fixture.requests(for: "/form") == 3)
                _ = try await fixture.load(fixture.request("/made"))
                // The redirect itself has brought it.
                #expect(fixture.requests(for: "/made") == 2)
            }
        }

        @Test("others that use the cache learn of it soon, though no session asks")
        func others() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("stored", cacheControl: "max-age=60"))
                let get = try fixture.request("/a")
                _ = try await fixture.load(get)
                let stored = CacheRequest(try #require(get.url))
                #expect(await fixture.cache.contains(stored))
                _ = try await fixture.load(Self.request("POST", "/a", fixture))
                while await fixture.cache.contains(stored) { await Task.yield() }
            }
        }
    }
}
