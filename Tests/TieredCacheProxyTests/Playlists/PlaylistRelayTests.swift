import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct PlaylistRelayTests {
    private static let running = """
        #EXTM3U
        #EXT-X-TARGETDURATION:6
        #EXTINF:6,
        http://cdn.example/1.ts

        """

    private func withOrigin(
        _ body: (ScriptedOrigin, TieredCache) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory()
        var configuration = Configuration(directory: directory.path)
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        let cache = try TieredCache(configuration)
        do {
            try await body(origin, cache)
        } catch {
            await cache.shutdown()
            await origin.stop()
            throw error
        }
        await cache.shutdown()
        await origin.stop()
    }

    private func playlist(_ text: String, _ cacheControl: String?) -> OriginResource {
        var fields = HTTPFields()
        fields[.cacheControl] = cacheControl
        return OriginResource(
            .bytes(Array(text.utf8)),
            contentType: "application/vnd.apple.mpegurl",
            fields: fields
        )
    }

    @Test("A running playlist is never frozen", arguments: [nil, "no-store", "max-age=0"])
    func running(_ cacheControl: String?) async throws {
        try await withOrigin { origin, cache in
            let relay = PlaylistRelay(cache, prefix: "/T/")
            let request = try CacheRequest(origin.url("/live.m3u8"))
            for number in 1...3 {
                let text = Self.running + "#EXTINF:6,\n\(number).ts\n"
                origin.serve("/live.m3u8", playlist(text, cacheControl))
                let answer = try await relay.answer(request)
                #expect(answer.kind == .hls)
                let wanted = text.replacing("http://cdn", with: "/T/http/cdn")
                #expect(String(decoding: answer.bytes, as: UTF8.self) == wanted)
            }
        }
    }

    @Test("An ended playlist with explicit freshness is cache")
    func ended() async throws {
        try await withOrigin { origin, cache in
            let text = Self.running + "#EXT-X-ENDLIST\n"
            origin.serve("/vod.m3u8", playlist(text, "max-age=600"))
            let relay = PlaylistRelay(cache, prefix: "/T/")
            let request = try CacheRequest(origin.url("/vod.m3u8"))
            let first = try await relay.answer(request).bytes
            #expect(try await relay.answer(request).bytes == first)
            #expect(origin.log.exchanges.count == 1)
        }
    }

    @Test("Without the network a held playlist is used")
    func offline() async throws {
        try await withOrigin { origin, cache in
            let text = Self.running + "#EXT-X-ENDLIST\n"
            origin.serve("/vod.m3u8", playlist(text, nil))
            let relay = PlaylistRelay(cache, prefix: "/T/")
            let request = try CacheRequest(origin.url("/vod.m3u8"))
            let first = try await relay.answer(request).bytes
            await origin.stop()
            #expect(try await relay.answer(request).bytes == first)
        }
    }

    @Test("What is no playlist comes as it is")
    func strangers() async throws {
        try await withOrigin { origin, cache in
            origin.serve("/x.m3u8", playlist("http://x/", "max-age=60"))
            let relay = PlaylistRelay(cache, prefix: "/T/")
            let answer = try await relay.answer(try CacheRequest(origin.url("/x.m3u8")))
            #expect(answer.kind == nil)
            #expect(answer.bytes == Array("http://x/".utf8))
            let missing = try await relay.answer(try CacheRequest(origin.url("/none.m3u8")))
            #expect(missing.response.status == .notFound)
        }
    }

    @Test("A prefetched presentation is held whole")
    func prefetch() async throws {
        try await withOrigin { origin, cache in
            let master =
                "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/a.m3u8\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=2\nhigh/a.m3u8\n"
            let media =
                "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/k\"\n#EXTINF:1,\n1.ts\n#EXTINF:1,\n2.ts\n"
            origin.serve("/m.m3u8", playlist(master, "max-age=600"))
            origin.serve("/k", .text("0123456789abcdef", cacheControl: "max-age=600"))
            for variant in ["low", "high"] {
                origin.serve("/\(variant)/a.m3u8", playlist(media, "max-age=600"))
                for segment in ["1.ts", "2.ts"] {
                    origin.serve(
                        "/\(variant)/\(segment)",
                        .generated(length: 1000, cacheControl: "max-age=600")
                    )
                }
            }
            let request = try CacheRequest(origin.url("/m.m3u8"))
            _ = try await cache.prefetch(request)
            let outcome = await PlaylistPrefetch(cache, choice: .highest).run(request)
            #expect(outcome.failures.isEmpty)
            #expect(outcome.resources == 4)
            for path in ["/high/a.m3u8", "/high/1.ts", "/high/2.ts", "/k"] {
                #expect(await cache.contains(try CacheRequest(origin.url(path))), "\(path)")
            }
            #expect(!(await cache.contains(try CacheRequest(origin.url("/low/a.m3u8")))))
            let again = await PlaylistPrefetch(cache, choice: .all).run(request)
            #expect(again.failures.isEmpty)
            #expect(await cache.contains(try CacheRequest(origin.url("/low/2.ts"))))
        }
    }
}
