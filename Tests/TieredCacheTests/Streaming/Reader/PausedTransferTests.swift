import FoundationEssentials
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

/// Requests that pause where their reader wants no more for now, and go on where it does.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PausedTransferTests {
    private static let film = OriginResource.generated(
        length: 24 << 20,
        cacheControl: "max-age=600"
    )

    @Test("A film that is read in a row takes nine requests, and each byte comes once")
    func fewRequests() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", Self.film)
            try await fixture.withCache { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                #expect(try await firstDifference(reader.all(), Self.film.allBytes) == nil)
            }
            #expect(fixture.origin.log.exchanges.count <= 9)
            #expect(fixture.origin.log.bodyBytesWritten == 24 << 20)
        }
    }

    @Test("A request that pauses holds no slot, and goes on when its reader does")
    func goesOn() async throws {
        try await Self.withPause { fixture, cache, reader, _ in
            #expect(cache.engine.transfers.queue.snapshot().count(.stalled) == 1)
            let asked = fixture.origin.log.exchanges.count
            let stored = try #require(reader.storedRanges.last).upperBound
            #expect(stored <= 3_000_000 + 3_000_000 / 4 + 3 * 65_536)
            let rest = try await reader.bytes(at: 3_000_000, count: 24 << 20)
            #expect(firstDifference(rest, Self.film.bytes(3_000_000..<24 << 20)) == nil)
            #expect(fixture.origin.log.exchanges.count == asked)
        }
    }

    @Test("A reader near a paused request takes it along, one far ahead asks for itself")
    func otherReaders() async throws {
        try await Self.withPause { fixture, cache, reader, _ in
            let stored = try #require(reader.storedRanges.last).upperBound
            let asked = fixture.origin.log.exchanges.count
            let other = try await cache.reader(for: fixture.request("/film"))
            let near = stored + 100_000
            let bytes = try await other.bytes(at: near, count: 1000)
            #expect(firstDifference(bytes, Self.film.bytes(near..<near + 1000)) == nil)
            #expect(fixture.origin.log.exchanges.count == asked)
            let far = stored + 4 << 20
            let more = try await other.bytes(at: far, count: 1000)
            #expect(firstDifference(more, Self.film.bytes(far..<far + 1000)) == nil)
            #expect(fixture.origin.log.exchanges.count == asked + 1)
            withExtendedLifetime(reader) {}
        }
    }

    @Test("A response that joins a paused request takes it along")
    func joinedResponse() async throws {
        try await Self.withPause { fixture, cache, reader, _ in
            let asked = fixture.origin.log.exchanges.count
            let bytes = try await cache.response(for: fixture.request("/film")).body.collect()
            #expect(firstDifference(bytes, Self.film.allBytes) == nil)
            #expect(fixture.origin.log.exchanges.count <= asked + 1)
            withExtendedLifetime(reader) {}
        }
    }

    @Test("A request that nothing continues ends, and the reader asks again")
    func givesUp() async throws {
        try await Self.withPause { fixture, cache, reader, time in
            let asked = fixture.origin.log.exchanges.count
            while !cache.engine.transfers.queue.snapshot().transfers.isEmpty {
                time.advance(by: StoringSink.longestPause)
                await Task.yield()
            }
            let rest = try await reader.bytes(at: 3_000_000, count: 24 << 20)
            #expect(firstDifference(rest, Self.film.bytes(3_000_000..<24 << 20)) == nil)
            #expect(fixture.origin.log.exchanges.count == asked + 1)
        }
    }

    @Test("Of many that pause some end, and every reader gets its bytes")
    func manyPause() async throws {
        try await CacheFixture.run { fixture in
            let change = { (configuration: inout MediaCache.Configuration) in
                configuration.maximumDownloads = 2
            }
            for number in 0..<6 { fixture.origin.serve("/film\(number)", Self.film) }
            try await fixture.withCache(change) { cache in
                var readers: [CacheReader] = []
                for number in 0..<6 {
                    let reader = try await cache.reader(for: fixture.request("/film\(number)"))
                    _ = try await reader.bytes(at: 0, count: 3_000_000)
                    readers.append(reader)
                }
                #expect(cache.engine.transfers.queue.snapshot().count(.stalled) <= 2)
                for reader in readers {
                    let bytes = try await reader.bytes(at: 3_000_000, count: 4 << 20)
                    let end = 3_000_000 + Int64(4 << 20)
                    #expect(firstDifference(bytes, Self.film.bytes(3_000_000..<end)) == nil)
                }
            }
        }
    }

    /// Runs `body` with a reader that has read 3,000,000 bytes, and the request for the rest paused:
    /// another download has had the only slot since.
    private static func withPause(
        _ body: (CacheFixture, MediaCache, CacheReader, ManualTimeSource) async throws -> Void
    ) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/film", film)
            fixture.origin.serve("/page", .generated(length: 1000))
            let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
            let change = { (configuration: inout MediaCache.Configuration) in
                configuration.maximumDownloads = 1
                configuration.timeSource = time
            }
            try await fixture.withCache(change) { cache in
                let reader = try await cache.reader(for: fixture.request("/film"))
                let bytes = try await reader.bytes(at: 0, count: 3_000_000)
                #expect(firstDifference(bytes, film.bytes(0..<3_000_000)) == nil)
                #expect(try await cache.data(for: fixture.request("/page")).count == 1000)
                while cache.engine.transfers.queue.snapshot().count(.stalled) == 0 {
                    await Task.yield()
                }
                try await body(fixture, cache, reader, time)
            }
        }
    }
}
