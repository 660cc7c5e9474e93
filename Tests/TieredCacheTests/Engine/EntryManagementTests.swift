import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct EntryManagementTests {
    @Test("What is stored without a pin is pinned by the first request that asks for it")
    func aPinReachesWhatIsStored() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/page", .generated(length: 10_000, cacheControl: "max-age=60"))
            var request = try fixture.request("/page")
            try await fixture.withCache { cache in
                _ = try await cache.data(for: request)
                #expect(try await cache.entry(for: request)?.isPinned == false)
                request.options.insert(.pinned)
                let response = try await cache.response(for: request)
                _ = try await response.body.collect()
                #expect(response.storageError == nil)
                #expect(try await cache.entry(for: request)?.isPinned == true)
            }
            #expect(fixture.origin.log.exchanges.count == 1)
        }
    }

    @Test("A pin on what must not be stored is refused in words, and the bytes are delivered")
    func aPinThatCannotBeKept() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 10_000, cacheControl: "no-store")
            fixture.origin.serve("/page", page)
            var request = try fixture.request("/page")
            request.options.insert(.pinned)
            let pinned = request
            try await fixture.withCache { cache in
                let response = try await cache.response(for: pinned)
                #expect(try await firstDifference(response.body.collect(), page.allBytes) == nil)
                #expect(response.storageError?.code == .notStorable)
                #expect(response.isStored == false)
            }
        }
    }

    @Test("What was removed while it was read does not come back through the memory tier")
    func removalWinsOverPromotion() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 300_000, cacheControl: "max-age=60")
            let gate = OriginGate()
            fixture.origin.serve("/page", page, .first(1, .wait(for: gate, after: 200_000)))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let events = cache.events()
                async let reading = cache.data(for: request)
                for await event in events {
                    if case .downloadStarted = event.kind { break }
                }
                while try await cache.remove(request) == false { await Task.yield() }
                gate.open()
                #expect(try await firstDifference(reading, page.allBytes) == nil)
                #expect(cache.cachedData(for: request) == nil)
                #expect(await cache.contains(request) == false)
            }
        }
    }

    @Test("A successful POST makes the stored answer to GET ask before its next use")
    func unsafeMethodsInvalidate() async throws {
        try await CacheFixture.run { fixture in
            let page = OriginResource.generated(length: 5000, cacheControl: "max-age=60")
            fixture.origin.serve("/page", page)
            let get = try fixture.request("/page")
            var post = try CacheRequest(fixture.origin.url("/page"), method: .post)
            post.body = Data([1, 2, 3])
            let change = post
            try await fixture.withCache { cache in
                _ = try await cache.data(for: get)
                #expect(cache.cachedData(for: get) != nil)
                _ = try await cache.response(for: change).body.collect()
                #expect(cache.cachedData(for: get) == nil)
                let answer = try await cache.response(for: get).read()
                #expect(answer.source == .revalidated)
                #expect(firstDifference(answer.bytes, page.allBytes) == nil)
                // The 304 has taken the mark away.
                #expect(try await cache.response(for: get).source == .memory)
            }
            #expect(fixture.origin.log.exchanges.map(\.method) == ["GET", "POST", "GET"])
        }
    }

    @Test("Asking what is stored counts nothing and reads nothing")
    func containsHasNoTrace() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/page", .generated(length: 10_000, cacheControl: "max-age=60"))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in _ = try await cache.data(for: request) }
            try await fixture.withCache { cache in
                #expect(await cache.contains(request))
                var part = request
                part.range = .bounded(9000..<10_000)
                #expect(await cache.contains(part))
                part.range = .bounded(10_000..<10_001)
                #expect(await cache.contains(part) == false)
                #expect(cache.statistics.hits == 0)
                #expect(cache.statistics.misses == 0)
                #expect(cache.cachedData(for: request) == nil)
            }
        }
    }

    @Test("The books say what was stored, missed, received and confirmed")
    func theBooksAreRight() async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/page", .generated(length: 200_000, cacheControl: "no-cache"))
            let request = try fixture.request("/page")
            try await fixture.withCache { cache in
                let events = cache.events()
                _ = try await cache.data(for: request)
                _ = try await cache.data(for: request)
                fixture.origin.update("/page") { $0.version = 2 }
                _ = try await cache.data(for: request)
                // A reader may be done before its transfer has written that down.
                var stored: [Int64] = []
                var missed: [MediaCache.Event.MissReason] = []
                var finished = 0
                for await event in events {
                    if case .stored(.disk, let bytes) = event.kind { stored.append(bytes) }
                    if case .missed(let reason) = event.kind { missed.append(reason) }
                    if case .downloadFinished = event.kind { finished += 1 }
                    if finished == 3 { break }
                }
                let statistics = cache.statistics
                #expect(statistics.misses == 3)
                #expect(statistics.bytesStored == 400_000)
                #expect(statistics.bytesFromOrigin == 400_000)
                #expect(statistics.revalidations == 2)
                #expect(statistics.revalidationsUnchanged == 1)
                #expect(statistics.downloadsFinished == 3)
                #expect(stored == [200_000, 200_000])
                #expect(missed == [.absent, .stale, .stale])
            }
        }
    }

    @Test(
        "What stands in for an origin that is gone is told with its tier",
        arguments: [true, false]
    )
    func tierOfWhatIsStale(isInMemory: Bool) async throws {
        try await CacheFixture.run { fixture in
            fixture.origin.serve("/page", .generated(length: 1000, cacheControl: "max-age=0"))
            let request = try fixture.request("/page")
            func serveStale(_ cache: MediaCache) async throws {
                await fixture.origin.stop()
                let events = cache.events()
                #expect(try await cache.response(for: request).source == .stale)
                for await event in events {
                    guard case .hit(let tier, let isStale) = event.kind else { continue }
                    #expect(tier == (isInMemory ? .memory : .disk) && isStale)
                    break
                }
            }
            try await fixture.withCache({ $0.retries = 1 }) { cache in
                _ = try await cache.data(for: request)
                if isInMemory { try await serveStale(cache) }
            }
            if isInMemory { return }
            try await fixture.withCache({ $0.retries = 1 }) { try await serveStale($0) }
        }
    }

    @Test("What is less than a block when a download fails is not counted as stored")
    func unsealedEndIsNotStored() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 400_000, cacheControl: "max-age=60")
            let script = OriginScript.first(1, .cut(after: 100_000, .finish)).then(20, .dropped())
            fixture.origin.serve("/film", film, script)
            let request = try fixture.request("/film")
            try await fixture.withCache {
                $0.retries = 1
            } _: { cache in
                let events = cache.events()
                await #expect(throws: CacheError.self) { _ = try await cache.data(for: request) }
                for await event in events {
                    if case .downloadFailed = event.kind { break }
                }
                let stored = try #require(try await cache.entry(for: request)).storedBytes
                #expect(stored == 65_536)
                #expect(cache.statistics.bytesStored == stored)
            }
        }
    }

    @Test("An origin that lies about ranges is remembered with what it sent")
    func untrustedRangesAreRemembered() async throws {
        try await CacheFixture.run { fixture in
            let film = OriginResource.generated(length: 2 << 20, cacheControl: "max-age=60")
            fixture.origin.serve(
                "/film",
                film,
                OriginScript(.lying([.contentRange: "bytes 0-9/10"]))
            )
            var request = try fixture.request("/film")
            request.range = .bounded(1 << 20..<(1 << 20) + 1000)
            let part = request
            try await fixture.withCache { cache in
                #expect(
                    try await firstDifference(
                        cache.data(for: part),
                        film.allBytes[1 << 20..<(1 << 20) + 1000]
                    ) == nil
                )
                let entry = try await cache.engine.storage.entry(for: part.key, isUse: false)
                let metadata = try #require(entry?.metadata)
                let head = try #require(StoredResponse(encoded: metadata))
                #expect(head.flags.contains(.withoutRanges))
            }
        }
    }

    @Test(
        "What is no URL is named without what may be a secret",
        arguments: [
            "http://user:pass@exa mple.com/a?token=secret",
            "user:pass@example.com/secret?x",
            "http://user:pa/ss@host:port/?secret",
        ]
    )
    func messagesHoldNoSecrets(_ url: String) throws {
        let error = #expect(throws: CacheError.self) { try CacheRequest(url) }
        let message = try #require(error?.message)
        #expect(!message.contains("pass"))
        #expect(!message.contains("pa/ss"))
        #expect(!message.contains("secret="))
        #expect(!message.contains("=secret"))
    }
}
