import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Testing
import TieredCache
import TieredCacheTesting

/// The articles about the inside, about several processes, and about migrating.
extension ArticleTests {
    @Test func architecture() async throws {
        try await run { cache, place in
            let posterURL = try place.url("/poster")
            for _ in 0..<2 {
                let response = try await cache.response(from: posterURL)
                _ = try await response.body.collect()
                print(response.source, response.cacheStatus)
            }
            let nextURL = try place.url("/next")
            for beginning in ["origin TieredCache; fwd=uri-miss; stored", "disk TieredCache; hit"] {
                let response = try await cache.response(from: nextURL)
                _ = try await response.body.collect()
                #expect("\(response.source) \(response.cacheStatus)".hasPrefix(beginning))
            }
        }
    }

    @Test func formats() async throws {
        try await run { cache, place in
            let filmURL = try place.url("/film")
            _ = try await cache.data(from: filmURL)
            if let file = try await cache.fileURL(for: CacheRequest(filmURL)) {
                print("an ordinary film:", file.path(percentEncoded: false))
            }
            let file = try #require(await cache.fileURL(for: CacheRequest(filmURL)))
            let bytes = try Data(contentsOf: file)
            #expect(place.origin.resource("/film")?.generatedBody?.matches(Array(bytes)) == true)
            let report = try await cache.verify(repair: true) { finding in
                print(finding.kind, finding.path)
            }
            print(report.entries, report.blocks, report.damaged, report.repaired)
            #expect(report.entries == 1 && report.blocks == 48 && report.damaged == 0)
        }
    }

    @Test func performance() async throws {
        try await run { cache, place in
            let posterURL = try place.url("/poster")
            _ = try await cache.data(from: posterURL)
            let request = CacheRequest(posterURL)
            let elapsed = ContinuousClock().measure {
                for _ in 0..<1000 { _ = cache.cachedData(for: request) }
            }
            print("a hit in memory:", elapsed / 1000)
            let counters = cache.statistics
            print(counters.hitRatio ?? 0, counters.byteHitRatio ?? 0)
            print(counters.missesAbsent, counters.missesStale, counters.missesPartial)
            #expect(counters.memoryHits == 1000 && counters.missesAbsent == 1)
        }
    }

    @Test func processes() async throws {
        try await run { cache, place in
            let (directory, posterURL) = (place.directory, try place.url("/poster"))
            _ = try await cache.data(from: posterURL)
            let guest = try MediaCache(MediaCache.Configuration(directory: directory))
            if guest.storageError?.code == .notOwner {
                print("another process stores here; this one reads")
            }
            let bytes = try await guest.data(from: posterURL)
            #expect(guest.storageError?.code == .notOwner)
            #expect(bytes.count == 5000 && guest.statistics.diskHits == 1)
            try await pin(posterURL, in: guest)
            let next = try await guest.response(from: place.url("/next"))
            #expect(!next.isStored)
            await #expect {
                try await guest.downloads.start(CacheRequest(place.url("/next")))
            } throws: { ($0 as? CacheError)?.code == .notOwner }
            await guest.shutdown()
        }
    }

    // Not in a closure, where Swift 6.3 takes the error of the `do` for any.
    private func pin(_ posterURL: URL, in guest: MediaCache) async throws {
        do {
            try await guest.setPinned(true, for: CacheRequest(posterURL))
        } catch {
            guard error.code == .notOwner else { throw error }
        }
    }

    @Test func migratingFromCaches() async throws {
        try await run { cache, place in
            let (url, name) = (try place.url("/poster"), "poster")
            var request = CacheRequest(url)
            let data = try await cache.data(from: url)
            #expect(cache.cachedData(for: request) == data)
            try await cache.store(data, for: CacheRequest(url, key: name))
            request.policy = .reload
            request.policy = .cacheElseLoad
            request.policy = .cacheOnly
            let images = cache.memoryView(of: Image.self, named: "images") { $0.pixels.count }
            func image(for request: CacheRequest) async throws -> Image {
                if let image = images.value(forKey: request.key) { return image }
                let bytes = try await cache.data(for: request)
                return images.value(forKey: request.key) { Image(bytes) }
            }
            let image = try await image(for: request)
            #expect(image.pixels.count == 5000)
            let prefetcher = cache.prefetcher()
            prefetcher.rank([request])
            let used = try await cache.usage().bytes
            #expect(used > 5000)
            let isStored = await cache.contains(request)
            #expect(isStored)
            try await cache.store(data, for: request)
            try await cache.remove(request)
            try await cache.removeAll()
            let left = try await cache.usage().entries
            #expect(left == 0)
        }
    }

    @Test func migratingFromDownloads() async throws {
        try await run { cache, place in
            var configuration = MediaCache.Configuration(directory: nil)
            configuration.memoryLimit = configuration.diskLimit
            configuration.maximumSegments = 4
            configuration.maximumDownloads = 6
            configuration.maximumDownloadsPerHost = 4
            configuration.bandwidth.total = 1 << 20
            configuration.retries = 5
            configuration.timeout = .seconds(30)
            let another = try MediaCache(configuration)
            await another.shutdown()

            let hexadecimal = String(repeating: "0", count: 64)
            let digest = try #require(ContentDigest(.sha256, hexadecimal: hexadecimal))
            var request = CacheRequest(try place.url("/film"))
            request.expectedDigests = [digest]
            request.fields[.authorization] = "Bearer x"
            let download = try await cache.downloads.start(request)
            await download.pause()
            #expect([.paused, .failed].contains(Outcome(download.status)))
            await download.resume()
            await #expect { try await download.wait() } throws: {
                ($0 as? CacheError)?.code == .integrityFailed
            }
            try await cache.downloads.resumeAll()
            #expect(
                place.origin.log.exchanges.allSatisfy { $0.fields[.authorization] == "Bearer x" }
            )
        }
    }

    private enum Outcome: Equatable {
        case paused
        case failed
        case other

        init(_ status: DownloadStatus) {
            switch status.state {
            case .paused: self = .paused
            case .failed: self = .failed
            default: self = .other
            }
        }
    }
}
