import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct MediaCacheTests {
    static let fresh = "max-age=3600"

    @Test func answersFromOriginThenMemoryThenDisk() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 300_000, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let first = try await cache.response(for: request).read()
                #expect(firstDifference(first.bytes, film.allBytes) == nil)
                #expect(first.source == .origin)
                #expect(try await firstDifference(cache.data(for: request), film.allBytes) == nil)
                let second = try await cache.response(for: request).read()
                #expect(firstDifference(second.bytes, film.allBytes) == nil)
                #expect(second.source == .memory)
                #expect(firstDifference(cache.cachedData(for: request), film.allBytes) == nil)
            }
            try await fixture.withCache { cache in
                #expect(cache.cachedData(for: request) == nil)
                let third = try await cache.response(for: request).read()
                #expect(firstDifference(third.bytes, film.allBytes) == nil)
                #expect(third.source == .disk)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 5_000_000])
    func bodiesOfEverySizeComeBackWhole(_ length: Int64) async throws {
        try await CacheFixture.run { fixture in
            for framing in [OriginResource.Framing.contentLength, .chunked] {
                var resource = OriginResource.generated(length: length, cacheControl: Self.fresh)
                resource.framing = framing
                fixture.origin.serve("/\(framing)", resource)
                let request = try fixture.request("/\(framing)")
                try await fixture.withCache { cache in
                    let answer = try await cache.response(for: request).read()
                    #expect(firstDifference(answer.bytes, resource.allBytes) == nil, "\(framing)")
                }
                try await fixture.withCache { cache in
                    let answer = try await cache.response(for: request).read()
                    #expect(firstDifference(answer.bytes, resource.allBytes) == nil, "\(framing)")
                    #expect(answer.source == .disk, "\(framing)")
                    #expect(try await cache.entry(for: request)?.isComplete == true)
                }
            }
            #expect(fixture.origin.log.exchanges.count == 2)
        }
    }

    @Test func aNotModifiedAnswerBringsNoBody() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 100_000, cacheControl: "no-cache")
            fixture.origin.serve("/page", page)
            let request = try fixture.request("/page")
            for _ in 0..<2 {
                try await fixture.withCache { cache in
                    _ = try await cache.data(for: request)
                    let answer = try await cache.response(for: request).read()
                    #expect(answer.source == .revalidated)
                    #expect(firstDifference(answer.bytes, page.allBytes) == nil)
                }
            }
            let statuses = fixture.origin.log.exchanges.map(\.status)
            #expect(statuses == [200, 304, 304, 304])
        }
    }

    @Test func aChangedRepresentationReplacesTheOldOne() async throws {
        try await CacheFixture.run { fixture in
            let old = OriginResource.generated(length: 100_000, cacheControl: "no-cache")
            fixture.origin.serve("/page", old)
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                #expect(try await firstDifference(cache.data(for: request), old.allBytes) == nil)
                fixture.origin.update("/page") { $0.version = 2 }
                let new = try #require(fixture.origin.resource("/page"))
                #expect(new.allBytes != old.allBytes)
                #expect(try await firstDifference(cache.data(for: request), new.allBytes) == nil)
                var stored = request
                stored.policy = .cacheOnly
                #expect(try await firstDifference(cache.data(for: stored), new.allBytes) == nil)
            }
        }
    }

    @Test func aRangeFetchesItsBlocksAlone() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 10 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            let range: Range<Int64> = 3_000_000..<3_200_000
            try await fixture.withCache { cache in
                for _ in 0..<2 {
                    let body = try await cache.bytes(for: request, range: range)
                    #expect(
                        try await firstDifference(
                            body.collect(),
                            film.allBytes[3_000_000..<3_200_000]
                        ) == nil
                    )
                }
                var suffix = request
                suffix.range = .suffix(1000)
                #expect(
                    try await firstDifference(cache.data(for: suffix), film.allBytes.suffix(1000))
                        == nil
                )
                var beyond = request
                beyond.range = .openEnded(from: 10 << 20)
                await #expect(throws: CacheError.self) { try await cache.data(for: beyond) }
            }
            #expect(fixture.origin.log.bodyBytesWritten < 500_000)
        }
    }

    @Test func aPartIsCompletedByItsGapsAlone() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 8 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let middle = try await cache.bytes(for: request, range: 2 << 20..<4 << 20)
                _ = try await middle.collect()
            }
            try await fixture.withCache { cache in
                let answer = try await cache.response(for: request)
                let (bytes, source) = try await answer.read()
                #expect(firstDifference(bytes, film.allBytes) == nil)
                #expect(source == .origin)
                #expect(answer.bytesFromCache == 2 << 20)
                #expect(answer.bytesFromOrigin == 6 << 20)
            }
            #expect(fixture.origin.log.bodyBytesWritten == 8 << 20)
        }
    }

    @Test func anInterruptedDownloadGoesOnFromTheBlocksStored() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 8 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film, .first(1, .stall(after: 5_000_000)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                let body = try await cache.bytes(for: request)
                var read = 0
                for try await chunk in body {
                    read += chunk.count
                    if read >= 4_900_000 { break }
                }
            }
            try await fixture.withCache { cache in
                let answer = try await cache.response(for: request).read()
                #expect(firstDifference(answer.bytes, film.allBytes) == nil)
            }
            let second = try #require(fixture.origin.log.exchanges.last)
            #expect(second.fields[.range]?.hasPrefix("bytes=") == true)
            #expect(second.fields[.ifRange] == film.entityTagValue)
            #expect(second.status == 206)
            // Less than a block of what had arrived is fetched twice.
            #expect(fixture.origin.log.bodyBytesWritten < (8 << 20) + 100_000 + 65_536)
        }
    }

    @Test func aRepresentationThatChangesInTheMiddleIsNeverJoined() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 4 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film, .first(1, .stall(after: 2 << 20)))
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                for try await _ in try await cache.bytes(for: request) { break }
            }
            fixture.origin.update("/film") { $0.version = 2 }
            let new = try #require(fixture.origin.resource("/film"))
            try await fixture.withCache { cache in
                // The first bytes come from the old part; `data` starts again.
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, new.allBytes) == nil)
            }
        }
    }

    @Test func whatMustNotBeStoredIsDeliveredAllTheSame() async throws {
        try await CacheFixture.run { fixture in
            let secret = OriginResource.generated(length: 3 << 20, cacheControl: "no-store")
            fixture.origin.serve("/secret", secret)
            let request = try fixture.request("/secret")
            try await fixture.withCache { cache in
                for _ in 0..<2 {
                    let answer = try await cache.response(for: request).read()
                    #expect(firstDifference(answer.bytes, secret.allBytes) == nil)
                    #expect(answer.source == .origin)
                }
                #expect(try await cache.entries().isEmpty)
            }
        }
    }

    @Test func aBodyLargerThanTheLimitIsDelivered() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 3 << 20, cacheControl: Self.fresh)
            var chunked = film
            chunked.framing = .chunked
            fixture.origin.serve("/film", film)
            fixture.origin.serve("/chunked", chunked)
            try await fixture.withCache({ $0.diskLimit = 1 << 20 }) { cache in
                for path in ["/film", "/chunked"] {
                    let request = try fixture.request(path)
                    let answer = try await cache.response(for: request).read()
                    #expect(firstDifference(answer.bytes, film.allBytes) == nil, "\(path)")
                    let usage = try await cache.usage()
                    #expect(usage.bytes <= 1 << 20)
                }
            }
        }
    }

    @Test func thirtyRequestsForOneURLAreOneDownload() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 2 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/film", film)
            let request = try fixture.request("/film")
            try await fixture.withCache { cache in
                try await withThrowingTaskGroup(of: Data.self) { group in
                    for _ in 0..<30 { group.addTask { try await cache.data(for: request) } }
                    for try await bytes in group {
                        #expect(firstDifference(bytes, film.allBytes) == nil)
                    }
                }
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test func sixDownloadsRunAtOnce() async throws {
        try await CacheFixture.run { fixture in
            for number in 0..<30 {
                fixture.origin.serve(
                    "/\(number)",
                    .generated(length: 200_000, seed: UInt64(number), cacheControl: Self.fresh)
                )
            }
            try await fixture.withCache { cache in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<30 {
                        group.addTask {
                            let bytes = try await cache.data(for: fixture.request("/\(number)"))
                            let resource = fixture.origin.resource("/\(number)")
                            #expect(firstDifference(bytes, resource?.allBytes) == nil)
                        }
                    }
                    try await group.waitForAll()
                }
            }
            #expect(fixture.origin.log.openResponsesHighWaterMark <= 6)
            #expect(fixture.origin.log.exchanges.count == 30)
        }
    }

    @Test func policiesSayWhetherTheOriginIsAsked() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 1000, cacheControl: "max-age=0")
            fixture.origin.serve("/page", page)
            var request = try fixture.request("/page")
            try await fixture.withCache { cache in
                request.policy = .cacheOnly
                let only = request
                await #expect(throws: CacheError.self) { try await cache.data(for: only) }
                request.policy = .cacheElseLoad
                _ = try await cache.data(for: request)
                _ = try await cache.data(for: request)
                request.policy = .cacheOnly
                _ = try await cache.data(for: request)
                #expect(fixture.origin.log.exchanges.count == 1)
                request.policy = .reload
                _ = try await cache.data(for: request)
                #expect(fixture.origin.log.exchanges.map(\.status) == [200, 200])
                request.policy = .protocolDefault
                _ = try await cache.data(for: request)
                // The origin notes what it has sent after it was sent.
                await fixture.origin.waitUntil { $0.openResponses == 0 }
                #expect(fixture.origin.log.exchanges.map(\.status) == [200, 200, 304])
            }
        }
    }

    @Test func errorsAreAnswersAndThrownByData() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/gone", OriginScript(.status(410)))
            let request = try fixture.request("/gone")
            try await fixture.withCache { cache in
                #expect(try await cache.response(for: request).status == .gone)
                do {
                    _ = try await cache.data(for: request)
                    Issue.record("a status of 410 has no data")
                } catch let error as CacheError {
                    #expect(error.code == .httpStatus)
                    #expect(error.status == 410)
                }
                #expect(try await cache.entries().isEmpty)
            }
        }
    }

    @Test func aStaleResponseStandsInForAnOriginThatIsGone() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 1000, cacheControl: "max-age=0")
            fixture.origin.serve("/page", page)
            let request = try fixture.request("/page")
            try await fixture.withCache({ $0.retries = 1 }) { cache in
                _ = try await cache.data(for: request)
                await fixture.origin.stop()
                let answer = try await cache.response(for: request).read()
                #expect(answer.source == .stale)
                #expect(firstDifference(answer.bytes, page.allBytes) == nil)
            }
        }
    }

    @Test func aDirectoryThatCannotBeUsedIsPassedBy() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 1 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/page", page)
            let request = try fixture.request("/page")
            let file = "/dev/null/cache"
            try await fixture.withCache({ $0.path = .init(file) }) { cache in
                #expect(cache.storageError?.code == .localStorage)
                let bytes = try await cache.data(for: request)
                #expect(firstDifference(bytes, page.allBytes) == nil)
                await #expect(throws: CacheError.self) { try await cache.entries() }
            }
        }
    }

    @Test func aGuestReadsHitsAndStoresNothing() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 1 << 20, cacheControl: Self.fresh)
            fixture.origin.serve("/page", page)
            fixture.origin.serve("/other", page)
            try await fixture.withCache { owner in
                _ = try await owner.data(for: fixture.request("/page"))
                try await fixture.withCache { guest in
                    #expect(guest.storageError?.code == .notOwner)
                    let hit = try await guest.response(for: fixture.request("/page")).read()
                    #expect(hit.source == .disk)
                    #expect(firstDifference(hit.bytes, page.allBytes) == nil)
                    let miss = try await guest.response(for: fixture.request("/other")).read()
                    #expect(miss.source == .origin)
                    #expect(firstDifference(miss.bytes, page.allBytes) == nil)
                }
                #expect(try await owner.entries().count == 1)
            }
        }
    }
}
