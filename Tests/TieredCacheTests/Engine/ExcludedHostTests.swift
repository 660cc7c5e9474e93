import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Redirects to a host that rules leave alone: what comes of there is passed on, and not stored.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct ExcludedHostTests {
    private static let length: Int64 = 1_000_000

    private static func film(seed: UInt64 = 1) -> OriginResource {
        var film = OriginResource.generated(length: length, seed: seed, cacheControl: "max-age=60")
        film.entityTag = .custom("\"1\"")
        return film
    }

    /// The URL of a path at the host that the rules of ``request(_:_:)`` leave alone.
    private static func excluded(_ path: String, _ fixture: CacheFixture) -> String {
        fixture.origin.url(path).replacing("127.0.0.1", with: "localhost")
    }

    /// Lets `/latest` lead to a URL from now on.
    private static func lead(_ fixture: CacheFixture, to url: String, status: Int = 302) {
        fixture.origin.serve("/latest", OriginScript(.redirect(to: url, status: status)))
    }

    private static func request(
        _ fixture: CacheFixture,
        _ range: Range<Int64>? = nil
    ) throws -> CacheRequest {
        var rules = HostRules()
        try rules.add("exclude=localhost")
        var request = try fixture.request("/latest")
        request.range = range.map { .bounded($0) }
        rules.apply(to: &request)
        return request
    }

    private static func ranges(_ path: String, _ fixture: CacheFixture) -> [String?] {
        fixture.origin.log.exchanges(for: path).map { $0.fields[.range] }
    }

    @Test("A body of there is passed on, and stored nowhere", arguments: [302, 301])
    func whole(status: Int) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film())
            Self.lead(fixture, to: Self.excluded("/film", fixture), status: status)
            try await fixture.withCache { cache in
                for range in [nil, nil, 400_000..<500_000, 999_990..<Self.length] {
                    let data = try await cache.data(for: Self.request(fixture, range))
                    let slice = range.map { Int($0.lowerBound)..<Int($0.upperBound) }
                    let expected = Self.film().allBytes[slice ?? 0..<Int(Self.length)]
                    #expect(firstDifference(data, expected) == nil)
                }
                #expect(fixture.origin.log.exchanges(for: "/film").count == 4)
                #expect(try await cache.entries().isEmpty)
                #expect(cache.cachedData(for: try Self.request(fixture)) == nil)
                // The rule alone is the reason.
                for _ in 0..<2 { _ = try await cache.data(for: fixture.request("/latest")) }
                #expect(fixture.origin.log.exchanges(for: "/film").count == 5)
            }
        }
    }

    @Test("Neither is what is small, an error, or a part that stands alone")
    func others() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", .generated(length: 1000, cacheControl: "max-age=60"))
            let gone = OriginBehaviour.status(404).with {
                $0.overrides[.cacheControl] = "max-age=60"
            }
            fixture.origin.serve("/gone", OriginScript(gone))
            var part = Self.film()
            part.entityTag = .none
            fixture.origin.serve("/part", part)
            try await fixture.withCache { cache in
                for (path, range) in [("/film", nil), ("/gone", nil), ("/part", 0..<100)]
                    as [(String, Range<Int64>?)]
                {
                    Self.lead(fixture, to: Self.excluded(path, fixture))
                    for _ in 0..<2 {
                        let response = try await cache.response(for: Self.request(fixture, range))
                        _ = try await response.body.collect()
                    }
                    #expect(fixture.origin.log.exchanges(for: path).count == 2, "\(path)")
                    #expect(try await cache.entries().isEmpty, "\(path)")
                }
            }
        }
    }

    @Test("A body that is cut is gone on with")
    func cut() async throws {
        try await CacheFixture.run { fixture in
            let cut = OriginBehaviour.cut(after: 600_000, .finish)
            fixture.origin.serve("/film", Self.film(), .first(1, cut))
            Self.lead(fixture, to: Self.excluded("/film", fixture))
            try await fixture.withCache { cache in
                let data = try await cache.data(for: Self.request(fixture))
                #expect(firstDifference(data, Self.film().allBytes) == nil)
                #expect(try await cache.entries().isEmpty)
            }
            #expect(Self.ranges("/film", fixture) == [nil, "bytes=600000-999999"])
        }
    }

    @Test(
        "Nothing is joined to what another host, or an earlier request, has left",
        arguments: [0, 1]
    )
    func storedBefore(seed: UInt64) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film())
            fixture.origin.serve("/other", Self.film(seed: seed))
            // Of the host itself before there was a rule, or of another one with the same tag.
            let before = seed == 1 ? Self.excluded("/film", fixture) : fixture.origin.url("/other")
            Self.lead(fixture, to: before)
            try await fixture.withCache { cache in
                var head = try fixture.request("/latest")
                head.range = .bounded(0..<393_216)
                _ = try await cache.data(for: head)
                #expect(try await cache.entries().count == 1)
                Self.lead(fixture, to: Self.excluded("/film", fixture))
                let tail = try await cache.data(for: Self.request(fixture, 800_000..<Self.length))
                #expect(firstDifference(tail, Self.film().allBytes[800_000...]) == nil)
                let data = try await cache.data(for: Self.request(fixture))
                #expect(firstDifference(data, Self.film().allBytes) == nil)
                #expect(try await cache.entries().isEmpty)
            }
        }
    }

    @Test("A stored response is not confirmed there")
    func revalidation() async throws {
        try await CacheFixture.run { fixture in
            var film = Self.film()
            film.fields[.cacheControl] = "no-cache"
            fixture.origin.serve("/film", film)
            fixture.origin.serve("/other", film)
            Self.lead(fixture, to: fixture.origin.url("/other"))
            try await fixture.withCache { cache in
                _ = try await cache.data(for: Self.request(fixture))
                Self.lead(fixture, to: Self.excluded("/film", fixture))
                let data = try await cache.data(for: Self.request(fixture))
                #expect(firstDifference(data, film.allBytes) == nil)
            }
            let asked = try #require(fixture.origin.log.exchanges(for: "/film").first)
            #expect(asked.fields[.ifNoneMatch] == nil && asked.fields[.range] == nil)
        }
    }

    @Test("What is led on from there to another host is stored")
    func passedThrough() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film())
            fixture.origin.serve(
                "/between",
                OriginScript(.redirect(to: fixture.origin.url("/film")))
            )
            Self.lead(fixture, to: Self.excluded("/between", fixture))
            try await fixture.withCache { cache in
                for _ in 0..<2 { _ = try await cache.data(for: Self.request(fixture)) }
                #expect(try await cache.entries().count == 1)
            }
            #expect(fixture.origin.log.exchanges(for: "/film").count == 1)
        }
    }
}
