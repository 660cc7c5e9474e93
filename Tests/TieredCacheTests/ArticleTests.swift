import CoreMetrics
import FoundationEssentials
import HTTPCaching
import TestParts
import Testing
import TieredCache
import TieredCacheObservability
import TieredCacheTesting
import Tracing

/// The code of the articles, run against an origin on loopback.
///
/// ``DocumentationTests`` compares it with the articles.
@Suite("Articles", .tags(.realTime), .timeLimit(.minutes(1)))
struct ArticleTests {
    struct Image {
        let pixels: [UInt8]

        init(_ bytes: Data) { pixels = Array(bytes) }
    }

    /// What the articles are about, and where it is.
    struct Place {
        let origin: ScriptedOrigin
        let directory: URL

        func url(_ path: String) throws -> URL { try #require(URL(string: origin.url(path))) }
    }

    func show(_ data: Data) {}
    func append(_ data: Data) {}

    func run(_ body: (MediaCache, Place) async throws -> Void) async throws {
        let origin = try await ScriptedOrigin.start()
        for path in ["/poster", "/next", "/list", "/film"] {
            let length: Int64 = path == "/film" ? 3 << 20 : 5000
            origin.serve(path, .generated(length: length, cacheControl: "max-age=600"))
        }
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "tieredcache-articles-\(UInt64.random(in: .min ... .max))"
        )
        let cache = try MediaCache(MediaCache.Configuration(directory: directory))
        do {
            try await body(cache, Place(origin: origin, directory: directory))
        } catch {
            Issue.record(error)
        }
        await cache.shutdown()
        await origin.stop()
        try FileManager.default.removeItem(at: directory)
    }

    @Test func posters() async throws {
        try await run { cache, place in
            let (posterURL, nextURL) = (try place.url("/poster"), try place.url("/next"))
            for isHit in [false, true] {
                #expect((cache.cachedData(for: CacheRequest(posterURL)) != nil) == isHit)
                let request = CacheRequest(posterURL)
                if let bytes = cache.cachedData(for: request) {
                    show(bytes)
                } else {
                    show(try await cache.data(for: request))
                }
            }
            let request = CacheRequest(posterURL)
            let bytes = try await cache.data(for: request)
            let images = cache.memoryView(of: Image.self, named: "posters") { $0.pixels.count }
            let image = images.value(forKey: request.key) { Image(bytes) }
            #expect(image.pixels.count == 5000 && images.contains(request.key))
            let prefetcher = cache.prefetcher()
            prefetcher.rank([CacheRequest(posterURL), CacheRequest(nextURL)])
            await place.origin.waitUntil { $0.exchanges(for: "/next").count == 1 }
        }
    }

    @Test func films() async throws {
        try await run { cache, place in
            let filmURL = try place.url("/film")
            let head = try await cache.bytes(for: CacheRequest(filmURL), range: 0..<1000).collect()
            #expect(head.count == 1000)
            let reader = try await cache.reader(for: CacheRequest(filmURL))
            try reader.seek(to: 1 << 20)
            let piece = try await reader.read(count: 64 << 10)
            #expect(!piece.isEmpty && reader.position == 1 << 20 + Int64(piece.count))
            let response = try await cache.response(from: filmURL)
            for try await chunk in response.body {
                append(chunk)
            }
            print(response.bytesFromCache, response.bytesFromOrigin)
            #expect(response.bytesFromCache + response.bytesFromOrigin == 3 << 20)
        }
    }

    @Test func downloads() async throws {
        try await run { cache, place in
            let filmURL = try place.url("/film")
            let download = try await cache.downloads.start(CacheRequest(filmURL))
            for await status in download.progress {
                print(status.state.name, status.fraction ?? 0)
                if status.state.isEnd { break }
            }
            #expect(download.status.state == .finished)
            let batch = try await cache.downloads.resumeAll()
            let outcome = await batch.wait()
            for failure in outcome.failures { print(failure.url, failure.problem.error) }
            #expect(outcome.failed == 0)
            for job in try await cache.downloads.all() {
                await job.acknowledge()
            }
            let left = try await cache.downloads.all()
            #expect(left.isEmpty)
        }
    }

    @Test func offline() async throws {
        try await run { cache, place in
            let (filmURL, signedURL) = (try place.url("/film"), try place.url("/film?signature=1"))
            var wanted = CacheRequest(filmURL)
            wanted.options.insert(.pinned)
            _ = try await cache.data(for: wanted)
            let pinned = try await cache.entry(for: wanted)
            #expect(pinned?.isPinned == true)
            try await cache.setPinned(false, for: wanted)
            wanted.policy = .cacheOnly
            let stored = try await cache.data(for: wanted)
            #expect(stored.count == 3 << 20)
            let episode = CacheRequest(signedURL, key: "episode 42")
            #expect(episode.key != CacheRequest(signedURL).key)
        }
    }

    @Test func policies() async throws {
        try await run { cache, place in
            let listURL = try place.url("/list")
            _ = try await cache.data(from: listURL)
            var reload = CacheRequest(listURL)
            reload.policy = .reload
            let newest = try await cache.response(for: reload)
            print(newest.cacheStatus, newest.isStored)
            #expect(newest.source == .origin)
        }
    }

    @Test func limits() async throws {
        try await run { cache, place in
            let directory = place.directory
            var limits = MediaCache.Configuration(directory: directory)
            limits.memoryLimit = 32 << 20
            limits.diskLimit = 1 << 30
            limits.minimumFreeDisk = 500 << 20
            try limits.validate()
            _ = try await cache.data(from: place.url("/film"))
            try await cache.setDiskLimit(500 << 20)
            let left = try await cache.trim(to: 100 << 20)
            let usage = try await cache.usage()
            print(left, usage.entries, usage.bytes, usage.limit)
            #expect(usage.entries == 1 && usage.limit == 500 << 20)
        }
    }

    @Test func observing() async throws {
        try await run { cache, place in
            let posterURL = try place.url("/poster")
            let events = cache.events()
            _ = try await cache.data(from: posterURL)
            for await event in events {
                guard case .downloadFinished(let bytes) = event.kind else { continue }
                print("fetched", bytes)
                break
            }
            let filmURL = try place.url("/film")
            let operation = cache.operation(for: CacheRequest(filmURL))
            let bar = Task { [progress = operation.progress] in
                for await state in progress { print(state.bytesReceived, state.timeLeft ?? .zero) }
            }
            let log = Task { [notices = operation.notices] in
                for await notice in notices { print(notice) }
            }
            for try await chunk in try await operation.response().body {
                append(chunk)
            }
            _ = await (bar.value, log.value)
            let counters = cache.statistics
            print(counters.memoryHits, counters.diskHits, counters.misses)
            let lifetime = try await cache.lifetimeStatistics()
            #expect(counters.misses == 2 && lifetime?.statistics.misses == 2)
            let directory = place.directory
            var observed = MediaCache.Configuration(directory: directory)
            observed.observeOrigins(
                tracer: InstrumentationSystem.tracer,
                metrics: MetricsSystem.factory
            )
            let metrics = CacheMetrics(of: cache)
            let reporting = Task { await metrics.run() }
            reporting.cancel()
            await reporting.value
            try observed.validate()
            if let entry = try await cache.entry(for: CacheRequest(posterURL)) {
                print(entry.storedRanges, entry.isPinned, entry.validator ?? "no validator")
            }
            let isComplete = try await cache.entry(for: CacheRequest(posterURL))?.isComplete
            #expect(isComplete == true)
        }
    }

    @Test func doubles() async throws {
        try await run { cache, _ in
            let origin = try await ScriptedOrigin.start()
            origin.serve("/film", .generated(length: 200_000), .first(1, .cut(after: 70_000)))
            let film = try CacheRequest(origin.url("/film"))
            let bytes = try await cache.data(for: film)
            print(bytes.count, origin.log.exchanges.map(\.status))
            await origin.stop()
            #expect(bytes.count == 200_000 && origin.log.exchanges.count == 2)
            let time = ManualTimeSource()
            var driven = MediaCache.Configuration(directory: nil)
            driven.timeSource = time
            time.advance(by: .seconds(60))
            try driven.validate()
        }
    }
}
