import FoundationEssentials
import HTTPCaching
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// The code of the articles about proxies, run against an origin on loopback.
///
/// `DocumentationTests` compares it with the articles.
@Suite("Articles about proxies", .tags(.realTime), .timeLimit(.minutes(1)))
struct ProxyArticleTests {
    private func run(
        _ body: (MediaCache, ScriptedOrigin, URL) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let text = "#EXTM3U\n#EXTINF:6,\n1.ts\n#EXTINF:6,\n/film/2.ts\n#EXT-X-ENDLIST\n"
        let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(origin.url("/film/list.m3u8"))\n"
        origin.serve("/film/list.m3u8", .text(text, cacheControl: "max-age=60"))
        origin.serve("/film/master.m3u8", .text(master, cacheControl: "max-age=60"))
        for path in ["/film", "/film/1.ts", "/film/2.ts"] {
            origin.serve(path, .generated(length: 100_000, cacheControl: "max-age=600"))
        }
        let files = try TemporaryDirectory("tieredcache-articles")
        let directory = URL(filePath: files.path.string, directoryHint: .isDirectory)
        let cache = try MediaCache(MediaCache.Configuration(directory: directory))
        do {
            try await body(cache, origin, directory)
        } catch {
            Issue.record(error)
        }
        await cache.shutdown()
        await origin.stop()
    }

    private func play(_ url: URL) {}

    /// Asks a server as a player does.
    private func get(_ url: URL) async throws -> Data {
        let player = try MediaCache(MediaCache.Configuration(directory: nil))
        do {
            let bytes = try await player.data(for: CacheRequest(url))
            await player.shutdown()
            return bytes
        } catch {
            await player.shutdown()
            throw error
        }
    }

    @Test func playlists() async throws {
        try await run { cache, origin, _ in
            let masterURL = try #require(URL(string: origin.url("/film/master.m3u8")))
            let proxy = try await PlayerProxy.start(cache: cache)
            let playlist = try proxy.url(for: masterURL)
            play(playlist)
            let rewritten = String(decoding: try await get(playlist), as: UTF8.self)
            let list = try #require(URL(string: origin.url("/film/list.m3u8")))
            let proxied = try proxy.url(for: list)
            let path = proxied.absoluteString.dropFirst("http://127.0.0.1:\(proxy.port)".count)
            #expect(path.first == "/" && rewritten.contains("\n\(path)\n"))
            await proxy.stop()
        }
    }

    @Test func offlinePlaylists() async throws {
        try await run { cache, origin, _ in
            let masterURL = try #require(URL(string: origin.url("/film/master.m3u8")))
            var master = CacheRequest(masterURL)
            master.options.insert(.pinned)
            let kept = await PlaylistPrefetch(cache, choice: .highest).run(master)
            for failure in kept.failures { print(failure.url, failure.error) }
            #expect(kept.failures.isEmpty && kept.resources == 3)
            for path in ["master.m3u8", "list.m3u8", "1.ts", "2.ts"] {
                let request = try CacheRequest(origin.url("/film/\(path)"))
                let entry = try await cache.entry(for: request)
                #expect(entry?.isPinned == true && entry?.isComplete == true, "\(path)")
            }
        }
    }

    @Test func segments() async throws {
        try await run { cache, origin, _ in
            let site = origin.url("")
            let list = try CacheRequest("\(site)/film/list.m3u8")
            let response = try await cache.response(for: list)
            let text = String(decoding: try await response.body.collect(), as: UTF8.self)
            let names = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            var segments: [CacheRequest] = []
            for name in names {
                let address = try response.finalTarget.resolving(reference: String(name))
                var segment = try CacheRequest(address.string)
                segment.options.insert(.pinned)
                segments.append(segment)
            }
            let batch = try await cache.downloads.start(segments)
            let outcome = await batch.wait()
            print(outcome.finished, outcome.failures, outcome.bytes)
            #expect(outcome.finished == 2 && outcome.bytes == 200_000)
            for segment in segments {
                let entry = try await cache.entry(for: segment)
                #expect(entry?.isPinned == true && entry?.isComplete == true)
            }
        }
    }

    @Test func proxies() async throws {
        try await run { cache, origin, directory in
            let site = origin.url("")
            let filmURL = try #require(URL(string: "\(site)/film"))
            let proxy = try await PlayerProxy.start(cache: cache, directory: directory)
            let film = try proxy.url(for: filmURL)
            play(film)
            print(proxy.base)
            let played = try await get(film)
            #expect(played.count == 100_000)
            let page = String(decoding: try await get(proxy.base), as: UTF8.self)
            #expect(page.contains("/film"))
            var settings = ProxySettings()
            settings.originTimeout = .seconds(10)
            let reverse = try await ReverseProxy.start(
                cache: cache,
                origin: site,
                settings: settings
            )
            print(reverse.base, reverse.port)
            let forwarded = try await get(reverse.base.appending(path: "film"))
            #expect(forwarded == played)
            await proxy.stop()
            await reverse.stop()
        }
    }

    /// The calls of the table in the article about migrating.
    @Test func migrating() async throws {
        try await run { cache, origin, directory in
            let request = try CacheRequest(origin.url("/film"))
            let address = try #require(URL(string: origin.url("/film")))
            let events =
                cache.events()
            let proxy =
                try await PlayerProxy.start(cache: cache, directory: directory)
            let url =
                try proxy.url(for: address)
            let result =
                try await cache.prefetch(request)
            #expect(result.bytesFromOrigin == 100_000)
            let played = try await get(url)
            #expect(played.count == 100_000)
            let file =
                try await cache.fileURL(for: request)
            #expect(file != nil)
            await proxy.stop()
            await cache.shutdown()
            var kinds = 0
            for await _ in events { kinds += 1 }
            #expect(kinds > 0)
        }
    }
}
