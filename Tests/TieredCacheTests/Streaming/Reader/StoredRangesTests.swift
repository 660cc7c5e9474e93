import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Which bytes a reader can give without the origin.
@Suite(.tags(.realTime), .timeLimit(.minutes(5)))
struct StoredRangesTests {
    private static let length: Int64 = 8 << 20

    private func film(_ cacheControl: String = "max-age=600") -> OriginResource {
        .generated(length: Self.length, cacheControl: cacheControl)
    }

    @Test("They grow where the reader reads, and end with the whole")
    func grow() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film())
            try await fixture.withCache { cache in
                var options = ReaderOptions()
                options.maximumReadAhead = 0
                let reader = try await cache.reader(
                    for: try fixture.request("/film"),
                    options: options
                )
                for offset in [0, 5 << 20] as [Int64] {
                    _ = try await reader.bytes(at: offset, count: 100)
                    #expect(reader.storedRanges.contains { $0.contains(offset + 99) })
                }
                let ranges = reader.storedRanges
                #expect(ranges.count == 2 && ranges[0].upperBound < ranges[1].lowerBound)
                _ = try await reader.all()
                #expect(reader.storedRanges == [0..<Self.length])
            }
        }
    }

    @Test("What is in memory is there as a whole; what is not stored is not there")
    func elsewhere() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/none", film("no-store"))
            fixture.origin.serve("/small", .generated(length: 1000, cacheControl: "max-age=600"))
            try await fixture.withCache { cache in
                let none = try await cache.reader(for: try fixture.request("/none"))
                _ = try await none.bytes(at: 0, count: 1000)
                #expect(none.storedRanges.isEmpty)
                let small = try fixture.request("/small")
                _ = try await cache.data(for: small)
                let reader = try await cache.reader(for: small)
                #expect(reader.storedRanges == [0..<1000])
                let blocking = cache.blockingReader(for: small)
                #expect(blocking.storedRanges.isEmpty)
            }
        }
    }
}

/// Readers that are opened without a task, over what is whole, fresh and open.
@Suite(.timeLimit(.minutes(5)))
struct ReaderAtHandTests {
    private static let film = OriginResource.generated(length: 3 << 20, cacheControl: "max-age=600")

    private func opener(_ cache: MediaCache, _ request: CacheRequest) -> ReaderOpener {
        ReaderOpener(responder: cache.responder, request: request, options: ReaderOptions())
    }

    @Test("A film that is whole and open is at hand, and counts as a hit")
    func whole() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            try await fixture.withCache { cache in
                let request = try fixture.request("/film")
                #expect(opener(cache, request).readerAtHand() == nil)
                let first = try await cache.reader(for: request)
                _ = try await first.bytes(at: 0, count: 100)
                #expect(opener(cache, request).readerAtHand() == nil)
                _ = try await first.all()
                let hits = cache.statistics.diskHits
                let reader = try #require(opener(cache, request).readerAtHand())
                #expect(cache.statistics.diskHits == hits + 1)
                #expect(reader.status == 200 && reader.size == 3 << 20 && reader.isSeekable)
                #expect(reader.fields[.contentType] == "application/octet-stream")
                let bytes = try await reader.bytes(at: 1 << 20, count: 1000)
                #expect(bytes == Self.film.bytes(1 << 20..<(1 << 20) + 1000))
                #expect(fixture.origin.log.bodyBytesWritten <= 3 << 20)
                var reload = request
                reload.policy = .reload
                #expect(opener(cache, reload).readerAtHand() == nil)
                var pinned = request
                pinned.options = .pinned
                #expect(opener(cache, pinned).readerAtHand() == nil)
                withExtendedLifetime(first) {}
            }
        }
    }

    @Test("A small body is left to the memory tier, and is at hand from there")
    func small() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/small", .generated(length: 1000, cacheControl: "max-age=600"))
            try await fixture.withCache { cache in
                let request = try fixture.request("/small")
                let first = try await cache.reader(for: request)
                _ = try await first.all()
                #expect(opener(cache, request).readerAtHand() == nil)
                let second = try await cache.reader(for: request)
                #expect(opener(cache, request).readerAtHand()?.size == 1000)
                withExtendedLifetime((first, second)) {}
            }
        }
    }

    @Test("What is stale, or selected by other fields, is looked up")
    func looked() async throws {
        try await CacheFixture.run { fixture in
            var film = Self.film
            film.fields[.cacheControl] = "max-age=0"
            fixture.origin.serve("/stale", film)
            film = Self.film
            film.fields[.vary] = "Accept-Language"
            fixture.origin.serve("/vary", film)
            try await fixture.withCache { cache in
                let stale = try fixture.request("/stale")
                let first = try await cache.reader(for: stale)
                _ = try await first.all()
                #expect(opener(cache, stale).readerAtHand() == nil)
                var request = try fixture.request("/vary")
                request.fields[.acceptLanguage] = "en"
                let second = try await cache.reader(for: request)
                _ = try await second.all()
                #expect(opener(cache, request).readerAtHand() != nil)
                request.fields[.acceptLanguage] = "de"
                #expect(opener(cache, request).readerAtHand() == nil)
                withExtendedLifetime((first, second)) {}
            }
        }
    }
}
