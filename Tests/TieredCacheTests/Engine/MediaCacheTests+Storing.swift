import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCacheTesting

@testable import TieredCache

// What is in the cache before anybody asks.
extension MediaCacheTests {
    @Test func applicationsStoreAndRemove() async throws {
        try await CacheFixture.run { fixture in
            let request = try fixture.request("/mine")
            let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
            try await fixture.withCache { cache in
                try await cache.store(bytes, for: request, contentType: "text/plain")
                #expect(firstDifference(cache.cachedData(for: request), bytes) == nil)
                #expect(await cache.contains(request))
            }
            try await fixture.withCache { cache in
                let answer = try await cache.response(for: request)
                #expect(answer.fields[.contentType] == "text/plain")
                let read = try await answer.read().bytes
                #expect(firstDifference(read, bytes) == nil)
                let url = try #require(try await cache.fileURL(for: request))
                #expect(try firstDifference(Data(contentsOf: url), bytes) == nil)
                let removed = [try await cache.remove(request), try await cache.remove(request)]
                #expect(removed == [true, false])
                #expect(await cache.contains(request) == false)
                let gone = try await cache.fileURL(for: request)
                #expect(gone == nil)
            }
            #expect(fixture.origin.log.exchanges.isEmpty)
        }
    }

    @Test func prefetchTakesTheHeadAndTheMovieBoxBehindTheMedia() async throws {
        try await CacheFixture.run { fixture in
            var file: [UInt8] = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0]
            let media = 6 << 20
            file += withUnsafeBytes(of: UInt32(media).bigEndian) { [UInt8]($0) }
            file += Array("mdat".utf8) + [UInt8](repeating: 7, count: media - 8)
            let movie = 50_000
            file += withUnsafeBytes(of: UInt32(movie).bigEndian) { [UInt8]($0) }
            file += Array("moov".utf8) + [UInt8](repeating: 9, count: movie - 8)
            var resource = OriginResource(.bytes(file))
            resource.fields[.cacheControl] = Self.fresh
            fixture.origin.serve("/film.mp4", resource)
            let request = try fixture.request("/film.mp4")
            try await fixture.withCache { cache in
                let result = try await cache.prefetch(request, bytes: 800_000)
                #expect(result.source == .origin)
                var stored = request
                stored.policy = .cacheOnly
                for range: Range<Int64> in [
                    0..<800_000, Int64(media + 16)..<Int64(media + 16 + movie),
                ] {
                    stored.range = .bounded(range)
                    let expected = file[Int(range.lowerBound)..<Int(range.upperBound)]
                    #expect(try await cache.data(for: stored).elementsEqual(expected))
                }
            }
            #expect(fixture.origin.log.bodyBytesWritten < 800_000 + 1_500_000)
        }
    }

    @Test func prefetchTakesTheRestOfAMovieBoxThatTheHeadEndsIn() async throws {
        try await CacheFixture.run { fixture in
            // As of a long film that was written for streaming: longer than the head and the
            // budget.
            var file: [UInt8] = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0]
            let movie = 4 << 20
            file += withUnsafeBytes(of: UInt32(movie).bigEndian) { [UInt8]($0) }
            file += Array("moov".utf8) + [UInt8](repeating: 9, count: movie - 8)
            file += [0, 0, 0, 0] + Array("mdat".utf8) + [UInt8](repeating: 7, count: 100_000)
            var resource = OriginResource(.bytes(file))
            resource.fields[.cacheControl] = Self.fresh
            fixture.origin.serve("/film.mp4", resource)
            let request = try fixture.request("/film.mp4")
            try await fixture.withCache { cache in
                _ = try await cache.prefetch(request, bytes: 2 << 20)
                var stored = request
                (stored.policy, stored.range) = (.cacheOnly, .bounded(0..<3 << 20))
                #expect(try await cache.data(for: stored).elementsEqual(file[..<(3 << 20)]))
            }
        }
    }
}
