import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// A redirect that leads elsewhere than before: a validator counts for the URL that gave it
/// (invariant 3, RFC 9110 §8.8.3).
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct RedirectedResourceTests {
    private static let length: Int64 = 1_000_000

    /// Two of these with different seeds cannot be told apart by anything but their bytes.
    private static func film(seed: UInt64, cacheControl: String = "max-age=60") -> OriginResource {
        var film = OriginResource.generated(length: length, seed: seed, cacheControl: cacheControl)
        film.entityTag = .custom("\"1\"")
        return film
    }

    /// Lets `/latest` lead to `path` from now on.
    private static func lead(_ fixture: CacheFixture, to path: String, status: Int = 302) {
        fixture.origin.serve("/latest", OriginScript(.redirect(to: path, status: status)))
    }

    /// Holds the first 400,000 bytes of what `/latest` leads to.
    private static func isHeadStored(_ fixture: CacheFixture) async throws {
        try await fixture.withCache { cache in
            var head = try fixture.request("/latest")
            head.range = .bounded(0..<393_216)
            _ = try await cache.data(for: head)
        }
    }

    private static func rest(_ fixture: CacheFixture, _ path: String) -> [String?] {
        fixture.origin.log.exchanges.filter { $0.target == path }.map { $0.fields[.range] }
    }

    @Test("Another path with the same tag and length is not gone on with")
    func otherPath() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/v1", Self.film(seed: 1))
            fixture.origin.serve("/v2", Self.film(seed: 2))
            Self.lead(fixture, to: "/v1")
            try await Self.isHeadStored(fixture)
            Self.lead(fixture, to: "/v2")
            try await fixture.withCache { cache in
                let data = try await cache.data(for: fixture.request("/latest"))
                #expect(firstDifference(data, Self.film(seed: 2).allBytes) == nil)
            }
        }
    }

    @Test("A mirror with the same bytes is gone on with, once stored ones have come again")
    func mirror() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/v1", Self.film(seed: 1))
            fixture.origin.serve("/mirror", Self.film(seed: 1))
            Self.lead(fixture, to: "/v1")
            try await Self.isHeadStored(fixture)
            Self.lead(fixture, to: "/mirror")
            try await fixture.withCache { cache in
                let data = try await cache.data(for: fixture.request("/latest"))
                #expect(firstDifference(data, Self.film(seed: 1).allBytes) == nil)
            }
            #expect(Self.rest(fixture, "/mirror") == ["bytes=327680-999999"])
        }
    }

    @Test("What is far from stored bytes is asked for after some of those have come again")
    func probe() async throws {
        for seed in [1, 2] as [UInt64] {
            try await CacheFixture.run { fixture in
                fixture.origin.serve("/v1", Self.film(seed: 1))
                fixture.origin.serve("/other", Self.film(seed: seed))
                Self.lead(fixture, to: "/v1")
                try await Self.isHeadStored(fixture)
                Self.lead(fixture, to: "/other")
                try await fixture.withCache { cache in
                    var tail = try fixture.request("/latest")
                    tail.range = .bounded(900_000..<Self.length)
                    let data = try await cache.data(for: tail)
                    #expect(
                        firstDifference(data, Self.film(seed: seed).allBytes[900_000...]) == nil
                    )
                }
                let asked = Self.rest(fixture, "/other")
                #expect(asked.first == "bytes=327680-393215")
                if seed == 1 { #expect(asked.dropFirst() == ["bytes=851968-999999"]) }
            }
        }
    }

    @Test("Where only the query differs, what can be compared is", arguments: [1, 2] as [UInt64])
    func otherQuery(seed: UInt64) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film?sig=1", Self.film(seed: 1))
            fixture.origin.serve("/film?sig=2", Self.film(seed: seed))
            Self.lead(fixture, to: "/film?sig=1")
            try await Self.isHeadStored(fixture)
            Self.lead(fixture, to: "/film?sig=2")
            try await fixture.withCache { cache in
                let data = try await cache.data(for: fixture.request("/latest"))
                #expect(firstDifference(data, Self.film(seed: seed).allBytes) == nil)
            }
            let asked = Self.rest(fixture, "/film?sig=2")
            #expect(asked.first == "bytes=327680-999999")
            if seed == 1 { #expect(asked.count == 1) }
            // The whole anew. It goes on alone for a while; a client that comes back later than
            // that asks for what is missing by then.
            #expect(asked.count <= 3 && asked.dropFirst().first == (seed == 1 ? nil : .some(nil)))
            for range in asked.dropFirst(2) { #expect(range != nil) }
        }
    }

    @Test("An origin without ranges sends all: the stored bytes are compared, and stay")
    func withoutRanges() async throws {
        for (path, seed) in [("/film?sig=2", 1), ("/film?sig=2", 2), ("/else", 2)]
            as [(String, UInt64)]
        {
            try await CacheFixture.run { fixture in
                fixture.origin.serve("/film?sig=1", Self.film(seed: 1))
                fixture.origin.serve(path, Self.film(seed: seed), OriginScript(.ignoringRange))
                Self.lead(fixture, to: "/film?sig=1")
                try await Self.isHeadStored(fixture)
                Self.lead(fixture, to: path)
                try await fixture.withCache { cache in
                    let data = try await cache.data(for: fixture.request("/latest"))
                    #expect(firstDifference(data, Self.film(seed: seed).allBytes) == nil)
                }
            }
        }
    }

    @Test("A cut within one download, and the next attempt is led elsewhere")
    func withinOneDownload() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/v1", Self.film(seed: 1), .first(1, .cut(after: 400_000)))
            fixture.origin.serve("/v2", Self.film(seed: 2))
            fixture.origin.serve(
                "/latest",
                .first(1, .redirect(to: "/v1")).then(.redirect(to: "/v2"))
            )
            try await fixture.withCache { cache in
                let data = try await cache.data(for: fixture.request("/latest"))
                #expect(firstDifference(data, Self.film(seed: 2).allBytes) == nil)
            }
        }
    }

    @Test("What passes the disk and is out already ends there, rather than go on elsewhere")
    func passing() async throws {
        try await CacheFixture.run { fixture in
            let film = Self.film(seed: 1, cacheControl: "no-store")
            let gate = OriginGate()
            let cut = OriginBehaviour.faithful.with {
                $0.interruptions = [(400_000, .wait(gate)), (400_000, .cut(.reset))]
            }
            fixture.origin.serve("/v1", film, .first(1, cut))
            fixture.origin.serve("/v2", Self.film(seed: 2, cacheControl: "no-store"))
            fixture.origin.serve(
                "/latest",
                .first(1, .redirect(to: "/v1")).then(.redirect(to: "/v2"))
            )
            try await fixture.withCache { cache in
                let response = try await cache.response(for: fixture.request("/latest"))
                var got = Data()
                let error = await #expect(throws: CacheError.self) {
                    while let chunk = try await response.body.source.next() {
                        got.append(chunk)
                        gate.open()
                    }
                }
                #expect(error?.code == .representationChanged)
                #expect(!got.isEmpty && got == film.allBytes.prefix(got.count))
            }
        }
    }

    @Test("Two readers that are led to different places do not fill one entry")
    func readersApart() async throws {
        try await CacheFixture.run { fixture in
            let gate = OriginGate()
            let waiting = OriginBehaviour.wait(for: gate, after: 100_000)
            fixture.origin.serve("/v1", Self.film(seed: 1), .first(1, waiting))
            fixture.origin.serve("/v2", Self.film(seed: 2))
            fixture.origin.serve(
                "/latest",
                .first(1, .redirect(to: "/v1")).then(.redirect(to: "/v2"))
            )
            try await fixture.withCache { cache in
                var (head, tail) = (
                    try fixture.request("/latest"), try fixture.request("/latest")
                )
                head.range = .bounded(0..<200_000)
                tail.range = .bounded(800_000..<Self.length)
                let first = try await cache.response(for: head)
                let end = try await cache.data(for: tail)
                gate.open()
                #expect(firstDifference(end, Self.film(seed: 2).allBytes[800_000...]) == nil)
                do {
                    let data = try await first.body.collect()
                    #expect(firstDifference(data, Self.film(seed: 1).allBytes[..<200_000]) == nil)
                } catch {
                    #expect((error as? CacheError)?.code == .representationChanged)
                }
                let whole = try await cache.data(for: fixture.request("/latest"))
                #expect(firstDifference(whole, Self.film(seed: 2).allBytes) == nil)
            }
        }
    }

    @Test("A job in segments that are led to different places has the bytes of one of them")
    func segments() async throws {
        try await CacheFixture.run { fixture in
            let length = 2 * JobSegments.minimumLength
            var films = [1, 2].map { OriginResource.generated(length: length, seed: $0) }
            for index in films.indices {
                films[index].entityTag = .custom("\"1\"")
                films[index].fields[.cacheControl] = "max-age=60"
                fixture.origin.serve("/v\(index + 1)", films[index])
            }
            fixture.origin.serve(
                "/latest",
                .first(1, .redirect(to: "/v1")).then(.redirect(to: "/v2"))
            )
            try await fixture.withCache {
                $0.maximumSegments = 2
            } _: { [films] cache in
                let request = try fixture.request("/latest")
                try await cache.downloads.start(request).wait()
                let data = try await cache.data(for: request)
                #expect(films.map(\.allBytes).contains(data))
            }
        }
    }

    @Test("A 304 of another path confirms nothing; one with another query does")
    func confirmation() async throws {
        for (path, seed, isConfirmed) in [("/v2", 2, false), ("/v1?sig=2", 1, true)]
            as [(String, UInt64, Bool)]
        {
            try await CacheFixture.run { fixture in
                fixture.origin.serve("/v1", Self.film(seed: 1, cacheControl: "max-age=0"))
                fixture.origin.serve(path, Self.film(seed: seed))
                Self.lead(fixture, to: "/v1")
                try await fixture.withCache { cache in
                    let request = try fixture.request("/latest")
                    let old = try await cache.data(for: request)
                    #expect(firstDifference(old, Self.film(seed: 1).allBytes) == nil)
                    Self.lead(fixture, to: path)
                    let response = try await cache.response(for: request)
                    let new = try await response.body.collect()
                    #expect(firstDifference(new, Self.film(seed: seed).allBytes) == nil)
                    #expect((response.source == .revalidated) == isConfirmed)
                }
            }
        }
    }

    @Test("Under a key of its own, a 304 confirms at another URL of the application's")
    func confirmationUnderKey() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/v1", Self.film(seed: 1, cacheControl: "max-age=0"))
            fixture.origin.serve("/mirror", Self.film(seed: 1))
            try await fixture.withCache { cache in
                let first = try CacheRequest(fixture.origin.url("/v1"), key: "film")
                _ = try await cache.data(for: first)
                let second = try CacheRequest(fixture.origin.url("/mirror"), key: "film")
                let response = try await cache.response(for: second)
                #expect(response.source == .revalidated)
                #expect(
                    try await firstDifference(response.body.collect(), Self.film(seed: 1).allBytes)
                        == nil
                )
            }
        }
    }

    @Test("What URLs have in common")
    func relations() throws {
        let stored = try TargetURI("https://a.example/x?sig=1")
        for (text, expected) in [
            ("https://a.example/x?sig=1", .same), ("https://a.example/x?sig=2", .otherQuery),
            ("https://a.example/x", .otherQuery), ("https://a.example/y?sig=1", .other),
            ("https://b.example/x?sig=1", .other), ("http://a.example/x?sig=1", .other),
        ] as [(String, ResourceRelation)] {
            #expect(try TargetURI(text).relation(to: stored) == expected)
        }
    }
}
