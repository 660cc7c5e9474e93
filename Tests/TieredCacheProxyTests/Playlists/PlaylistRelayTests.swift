import FoundationEssentials
import HTTPCaching
import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlaylistRelayTests {
    private static let running = """
        #EXTM3U
        #EXT-X-TARGETDURATION:6
        #EXTINF:6,
        http://cdn.example/1.ts

        """

    private func withOrigin(
        _ time: any TimeSource = SystemTimeSource(),
        _ body: (ScriptedOrigin, MediaCache) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory()
        var configuration = MediaCache.Configuration(path: directory.path)
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        configuration.timeSource = time
        let cache = try MediaCache(configuration)
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

    @Test("Without the network a stored playlist is used")
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

    @Test("A running playlist is used for half its refresh interval, an ended one as HTTP allows")
    func clock() async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        try await withOrigin(time) { origin, cache in
            let relay = PlaylistRelay(cache, prefix: "/T/", time: time)
            let request = try CacheRequest(origin.url("/live.m3u8"))
            func answer() async throws -> String {
                String(decoding: try await relay.answer(request).bytes, as: UTF8.self)
            }
            // A network of caches that says too much: a day.
            let day = "max-age=86400"
            origin.serve("/live.m3u8", playlist(Self.running + "1.ts\n", day))
            #expect(try await answer().hasSuffix("1.ts\n"))
            origin.serve("/live.m3u8", playlist(Self.running + "2.ts\n", day))
            time.advance(by: .seconds(2))
            #expect(try await answer().hasSuffix("1.ts\n"))
            #expect(origin.log.exchanges.count == 1)
            time.advance(by: .seconds(1))
            #expect(try await answer().hasSuffix("2.ts\n"))
            #expect(origin.log.exchanges.count == 2)
            origin.serve("/live.m3u8", playlist(Self.running + "#EXT-X-ENDLIST\n", day))
            time.advance(by: .seconds(3))
            #expect(try await answer().hasSuffix("#EXT-X-ENDLIST\n"))
            time.advance(by: .seconds(86_000))
            #expect(try await answer().hasSuffix("#EXT-X-ENDLIST\n"))
            #expect(origin.log.exchanges.count == 3)
        }
    }

    @Test("A key is asked for again unless its freshness is explicit, and used without the network")
    func keys() async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        try await withOrigin(time) { origin, cache in
            let memory = PlaylistRegistry()
            let relay = PlaylistRelay(cache, prefix: "/T/", memory: memory, time: time)
            let text =
                "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
                + "#EXT-X-KEY:METHOD=AES-128,URI=\"/fresh\"\n1.ts\n#EXT-X-ENDLIST\n"
            origin.serve("/a/vod.m3u8", playlist(text, "max-age=600"))
            for (path, control) in [("/a/k", nil), ("/fresh", "max-age=600")] as [(String, String?)]
            {
                var key = OriginResource.text("0123456789abcdef", cacheControl: control)
                // Old enough for a guess of days.
                key.lastModified = "Wed, 21 Oct 2015 07:28:00 GMT"
                origin.serve(path, key)
            }
            _ = try await relay.answer(try CacheRequest(origin.url("/a/vod.m3u8")))
            for path in ["/a/k", "/fresh"] {
                let request = try CacheRequest(origin.url(path))
                #expect(memory.isKey(request.target))
                for _ in 0..<3 {
                    let answer = try await relay.answer(request)
                    #expect(answer.bytes == Array("0123456789abcdef".utf8))
                }
            }
            #expect(origin.log.exchanges(for: "/a/k").count == 3)
            #expect(origin.log.exchanges(for: "/fresh").count == 1)
            await origin.stop()
            let answer = try await relay.answer(try CacheRequest(origin.url("/a/k")))
            #expect(answer.bytes.count == 16)
        }
    }

    @Test("A media playlist has the variables of the master playlist that led to it")
    func importedVariables() async throws {
        try await withOrigin { origin, cache in
            let relay = PlaylistRelay(cache, prefix: "/T/", memory: PlaylistRegistry())
            let master =
                "#EXTM3U\n#EXT-X-DEFINE:NAME=\"root\",VALUE=\"/v/7\"\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/a.m3u8\n"
            let media = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"root\"\n#EXTINF:1,\n{$root}/1.ts\n"
            origin.serve("/m.m3u8", playlist(master, "max-age=600"))
            origin.serve("/low/a.m3u8", playlist(media, "max-age=600"))
            origin.serve("/v/7/1.ts", .generated(length: 1000, cacheControl: "max-age=600"))
            let request = try CacheRequest(origin.url("/m.m3u8"))
            _ = try await relay.answer(request)
            let answer = try await relay.answer(try CacheRequest(origin.url("/low/a.m3u8")))
            let place = "/T/http/127.0.0.1:\(origin.port)/v/7/1.ts\n"
            #expect(String(decoding: answer.bytes, as: UTF8.self).hasSuffix(place))
            let outcome = await PlaylistPrefetch(cache, choice: .all).run(request)
            #expect(outcome.failures.isEmpty)
            #expect(await cache.contains(try CacheRequest(origin.url("/v/7/1.ts"))))
        }
    }

    @Test(
        "A prefetched DASH presentation is held whole, or what was chosen of it",
        arguments: [
            (VariantChoice.all, ["lo/i", "lo/1", "lo/2", "hi/i", "hi/1", "hi/2", "a.mp4"]),
            (.highest, ["hi/i", "hi/1", "hi/2", "a.mp4"]),
            (.upTo(5), ["lo/i", "lo/1", "lo/2", "a.mp4"]),
        ]
    )
    func dash(_ choice: VariantChoice, _ wanted: [String]) async throws {
        try await withOrigin { origin, cache in
            let manifest = """
                <MPD type="static" mediaPresentationDuration="PT4S"><BaseURL>x/</BaseURL><Period>
                <AdaptationSet><SegmentTemplate duration="2" media="$RepresentationID$/$Number$"
                initialization="$RepresentationID$/i"/>
                <Representation id="lo" bandwidth="1"/><Representation id="hi" bandwidth="9"/>
                </AdaptationSet><AdaptationSet><Representation id="a" bandwidth="2">
                <BaseURL>a.mp4</BaseURL><SegmentBase indexRange="0-9"/></Representation>
                </AdaptationSet></Period></MPD>
                """
            origin.serve(
                "/d/m.mpd",
                .text(manifest, contentType: "application/dash+xml", cacheControl: "max-age=600")
            )
            let all = ["lo/i", "lo/1", "lo/2", "hi/i", "hi/1", "hi/2", "a.mp4"]
            for name in all {
                origin.serve("/d/x/\(name)", .generated(length: 999, cacheControl: "max-age=600"))
            }
            let request = try CacheRequest(origin.url("/d/m.mpd"))
            _ = try await cache.prefetch(request)
            let outcome = await PlaylistPrefetch(cache, choice: choice).run(request)
            #expect(outcome.failures.isEmpty, "\(outcome.failures)")
            #expect(outcome.resources == wanted.count)
            for name in all {
                let isStored = await cache.contains(try CacheRequest(origin.url("/d/x/\(name)")))
                #expect(isStored == wanted.contains(name), "\(name)")
            }
        }
    }
}
