import Foundation
import HTTPTypes
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionTests {
    @Suite("URLSession with a cache: the cache policies of requests", .timeLimit(.minutes(1)))
    struct PolicyTests {
        /// What a policy asks the origin: of nothing stored, of a fresh and of a stale response.
        struct Expectation: Sendable, CustomTestStringConvertible {
            let policy: URLRequest.CachePolicy
            let missing: Bool
            let fresh: Bool
            let stale: Bool
            var testDescription: String { "policy \(policy.rawValue)" }
        }

        @Test(
            "each policy asks the origin as Foundation documents it",
            arguments: [
                Expectation(
                    policy: .useProtocolCachePolicy,
                    missing: true,
                    fresh: false,
                    stale: true
                ),
                Expectation(
                    policy: .reloadIgnoringLocalCacheData,
                    missing: true,
                    fresh: true,
                    stale: true
                ),
                Expectation(
                    policy: .reloadIgnoringLocalAndRemoteCacheData,
                    missing: true,
                    fresh: true,
                    stale: true
                ),
                Expectation(
                    policy: .returnCacheDataElseLoad,
                    missing: true,
                    fresh: false,
                    stale: false
                ),
                Expectation(
                    policy: .returnCacheDataDontLoad,
                    missing: false,
                    fresh: false,
                    stale: false
                ),
                Expectation(
                    policy: .reloadRevalidatingCacheData,
                    missing: true,
                    fresh: true,
                    stale: true
                ),
            ],
            ["GET", "range", "HEAD"]
        )
        func policies(expectation: Expectation, kind: String) async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/fresh", .text("0123", cacheControl: "max-age=60"))
                // Stale at once, and may be used nevertheless where the request allows it.
                fixture.origin.serve("/stale", .text("0123", cacheControl: "max-age=0"))
                fixture.origin.serve("/missing", .text("0123", cacheControl: "max-age=60"))
                _ = try await fixture.load(fixture.request("/fresh"))
                _ = try await fixture.load(fixture.request("/stale"))
                for (path, isAsked) in [
                    ("/missing", expectation.missing), ("/fresh", expectation.fresh),
                    ("/stale", expectation.stale),
                ] {
                    var request = try fixture.request(path, expectation.policy)
                    if kind == "HEAD" { request.httpMethod = kind }
                    if kind == "range" {
                        request.setValue("bytes=0-1", forHTTPHeaderField: "Range")
                    }
                    let before = fixture.requests(for: path)
                    if path == "/missing", !isAsked {
                        let error = await #expect(throws: URLError.self) {
                            try await fixture.load(request)
                        }
                        #expect(error?.code == .resourceUnavailable)
                    } else {
                        let text = try await fixture.load(request).text
                        #expect(text == ["GET": "0123", "range": "01"][kind, default: ""])
                    }
                    #expect(
                        fixture.requests(for: path) == before + (isAsked ? 1 : 0),
                        "\(path) \(expectation.policy)"
                    )
                }
            }
        }

        @Test("a reload past all caches says so to those on the way; a confirmation is a 304")
        func requestsToOrigin() async throws {
            try await SessionFixture.run { fixture in
                fixture.origin.serve("/a", .text("a", cacheControl: "max-age=60"))
                for policy: URLRequest.CachePolicy in [
                    .useProtocolCachePolicy, .reloadRevalidatingCacheData,
                    .reloadIgnoringLocalAndRemoteCacheData,
                ] {
                    let text = try await fixture.load(fixture.request("/a", policy)).text
                    #expect(text == "a")
                }
                let exchanges = fixture.origin.log.exchanges(for: "/a")
                #expect(exchanges.map(\.status) == [200, 304, 200])
                #expect(exchanges.last?.fields[.cacheControl] == "no-cache")
            }
        }
    }
}
