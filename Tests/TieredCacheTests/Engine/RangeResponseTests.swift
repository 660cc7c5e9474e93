import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct RangeResponseTests {
    @Test("The end of what is not stored is fetched where it is, not where it was looked for")
    func aSuffixOfWhatIsNotStored() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 2 << 20, cacheControl: "no-store")
            fixture.origin.serve("/film", film)
            var suffix = try fixture.request("/film")
            suffix.range = .suffix(1000)
            let request = suffix
            try await fixture.withCache { cache in
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, film.allBytes.suffix(1000)) == nil)
            }
        }
    }

    @Test("A range that reaches beyond an end that was not known ends there")
    func aRangeBeyondAnUnknownEnd() async throws {
        try await CacheFixture.run { fixture in
            for (path, cacheControl) in [("/kept", "max-age=60"), ("/passed", "no-store")] {
                var page = OriginResource.generated(length: 300_000, cacheControl: cacheControl)
                page.framing = .chunked
                page.acceptsRanges = false
                fixture.origin.serve(path, page)
                var part = try fixture.request(path)
                part.range = .bounded(100_000..<1_000_000)
                let request = part
                try await fixture.withCache { cache in
                    let bytes = try await cache.data(for: request)
                    #expect(
                        firstDifference(bytes, page.allBytes.dropFirst(100_000)) == nil,
                        "\(path)"
                    )
                }
            }
        }
    }

    @Test("A range that starts beyond an end that was not known does not exist")
    func aStartBeyondAnUnknownEnd() async throws {
        try await CacheFixture.run { fixture in
            for (path, cacheControl) in [("/kept", "max-age=60"), ("/passed", "no-store")] {
                var page = OriginResource.generated(length: 100_000, cacheControl: cacheControl)
                page.framing = .chunked
                page.acceptsRanges = false
                fixture.origin.serve(path, page)
                try await fixture.withCache { cache in
                    var range = try fixture.request(path)
                    range.range = .bounded(200_000..<300_000)
                    let request = range
                    let error = await #expect(throws: CacheError.self) {
                        try await cache.data(for: request)
                    }
                    #expect(error?.code == .rangeNotSatisfiable, "\(path)")
                }
            }
        }
    }

    @Test("Bytes are counted from 0, whatever part of a body they are")
    func partsAreNotSlices() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 5000, cacheControl: "max-age=60")
            fixture.origin.serve("/page", page)
            var request = try fixture.request("/page")
            try await fixture.withCache { cache in
                _ = try await cache.data(for: request)
                request.range = .bounded(1000..<2000)
                let data = try #require(cache.cachedData(for: request))
                #expect(data.startIndex == 0)
                #expect(firstDifference(data, page.allBytes[1000..<2000]) == nil)
                let streamed = try await cache.response(for: request).body.collect()
                #expect(streamed.startIndex == 0)
            }
        }
    }

    @Test("The answer to HEAD has a length and no body, and is not stored, key or not")
    func headHasNoBody() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve(
                "/film",
                .generated(length: 1 << 20, cacheControl: "max-age=60")
            )
            try await fixture.withCache { cache in
                for key in [nil, "film"] {
                    let url = fixture.origin.url("/film")
                    let request = try CacheRequest(url, key: key, method: .head)
                    let response = try await cache.response(for: request)
                    #expect(response.completeLength == 1 << 20)
                    #expect(try await response.body.collect().isEmpty)
                    #expect(response.isStored == false)
                }
                #expect(try await cache.entries().isEmpty)
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    @Test("An answer straight from the origin has no Age, one from the cache has")
    func ageIsOfTheCache() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/page", .generated(length: 10, cacheControl: "max-age=60"))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let first = try await cache.response(for: request)
                #expect(first.fields[.age] == nil)
                _ = try await first.body.collect()
                #expect(try await cache.response(for: request).fields[.age] != nil)
            }
        }
    }
}
