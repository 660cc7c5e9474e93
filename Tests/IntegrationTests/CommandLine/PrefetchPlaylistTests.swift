import HTTPTypes
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

/// `prefetch` of playlists and manifests, then play without the origin.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PrefetchPlaylistTests {
    private static let control = "max-age=3600"

    private func serveHLS(_ origin: ScriptedOrigin) {
        let master = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="audio/a.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=100,AUDIO="a"
            low/v.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=900,AUDIO="a"
            high/v.m3u8

            """
        let media =
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/key\"\n"
            + "#EXTINF:1,\n1.ts\n#EXTINF:1,\n2.ts\n#EXT-X-ENDLIST\n"
        let type = "application/vnd.apple.mpegurl"
        origin.serve("/m.m3u8", .text(master, contentType: type, cacheControl: Self.control))
        origin.serve("/key", .text("0123456789abcdef", cacheControl: Self.control))
        for (folder, list) in [("audio", "a"), ("low", "v"), ("high", "v")] {
            let path = "/\(folder)/\(list).m3u8"
            origin.serve(path, .text(media, contentType: type, cacheControl: Self.control))
            for segment in ["1.ts", "2.ts"] {
                origin.serveFresh("/\(folder)/\(segment)", length: 999)
            }
        }
    }

    private func serveDASH(_ origin: ScriptedOrigin) {
        let manifest = """
            <MPD type="static" mediaPresentationDuration="PT4S"><Period>
            <AdaptationSet><SegmentTemplate duration="2" media="$RepresentationID$/$Number$.ts"/>
            <Representation id="low" bandwidth="100"/><Representation id="high" bandwidth="900"/>
            </AdaptationSet></Period></MPD>
            """
        let type = "application/dash+xml"
        origin.serve("/m.mpd", .text(manifest, contentType: type, cacheControl: Self.control))
        for folder in ["low", "high"] {
            for segment in ["1.ts", "2.ts"] {
                origin.serveFresh("/\(folder)/\(segment)", length: 999)
            }
        }
    }

    @Test(
        "What is chosen is stored, and nothing else is asked for",
        arguments: [
            ("/m.m3u8", "lowest", ["low"]), ("/m.m3u8", "500", ["low"]),
            ("/m.m3u8", "highest", ["high"]), ("/m.m3u8", "all", ["low", "high"]),
            ("/m.mpd", "lowest", ["low"]), ("/m.mpd", "all", ["low", "high"]),
        ]
    )
    func variants(_ path: String, _ choice: String, _ folders: [String]) async throws {
        try await Workplace.with { place in
            path.hasSuffix("mpd") ? serveDASH(place.origin) : serveHLS(place.origin)
            let url = place.origin.url(path)
            let outcome = try await place.run("prefetch", url, "--variant", choice, "--json")
            outcome.expectDone()
            #expect(outcome.json.text("source") == "origin")
            for folder in ["low", "high"] {
                for segment in ["1.ts", "2.ts"] {
                    let count = place.exchanges("/\(folder)/\(segment)").count
                    #expect(count == (folders.contains(folder) ? 1 : 0), "\(folder)/\(segment)")
                }
            }
            if path.hasSuffix("m3u8") {
                #expect(place.exchanges("/key").count == 1)
                #expect(place.exchanges("/audio/2.ts").count == 1)
            }
            await place.origin.stop()
            for folder in folders {
                let target = "/\(folder)/2.ts"
                try await place.get(target, into: "x", "--policy", "cache-only").expectDone()
                #expect(try place.file("x", equals: target))
            }
        }
    }

    @Test(
        "Gaps and a byte order mark are not asked for, whatever the type says",
        arguments: ["application/vnd.apple.mpegurl", "application/octet-stream"]
    )
    func gaps(_ type: String) async throws {
        try await Workplace.with { place in
            let text =
                "\u{FEFF}#EXTM3U\n#EXTINF:1,\n1.ts\n#EXT-X-GAP\n#EXTINF:1,\n2.ts\n"
                + "#EXTINF:1,\n3.ts\n#EXT-X-ENDLIST\n"
            place.origin.serve("/list", .text(text, contentType: type, cacheControl: Self.control))
            for segment in ["/1.ts", "/3.ts"] { place.origin.serveFresh(segment, length: 999) }
            try await place.run("prefetch", place.origin.url("/list")).expectDone()
            let asked = Set(place.origin.log.exchanges.map(\.target))
            #expect(asked == ["/list", "/1.ts", "/3.ts"])
        }
    }

    @Test("A cookie of a playlist is sent for what it names, where it is for that")
    func cookies() async throws {
        try await Workplace.with { place in
            let type = "application/vnd.apple.mpegurl"
            func serve(_ path: String, _ text: String, cookie: String) {
                let list = OriginResource.text(text, contentType: type, cacheControl: Self.control)
                let script = OriginBehaviour.faithful.with { $0.overrides[.setCookie] = cookie }
                place.origin.serve(path, list, OriginScript(script))
            }
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/v/v.m3u8\n"
            serve("/m.m3u8", master, cookie: "m=1")
            let media = "#EXTM3U\n#EXTINF:1,\n1.ts\n#EXTINF:1,\n/x/2.ts\n#EXT-X-ENDLIST\n"
            serve("/v/v.m3u8", media, cookie: "v=2")
            for segment in ["/v/1.ts", "/x/2.ts"] { place.origin.serveFresh(segment, length: 999) }
            try await place.run("prefetch", place.origin.url("/m.m3u8")).expectDone()
            for (path, cookie) in [
                ("/m.m3u8", nil), ("/v/v.m3u8", "m=1"), ("/v/1.ts", "v=2; m=1"), ("/x/2.ts", "m=1"),
            ] {
                #expect(Set(place.exchanges(path).map { $0.fields[.cookie] }) == [cookie])
            }
            await place.origin.stop()
            try await place.get("/v/1.ts", into: "x", "--policy", "cache-only").expectDone()
        }
    }

    @Test("A part that failed is counted, the others are stored; a wrong choice is usage")
    func failures() async throws {
        try await Workplace.with { place in
            serveHLS(place.origin)
            place.origin.remove("/high/2.ts")
            let url = place.origin.url("/m.m3u8")
            let outcome = try await place.run("prefetch", url, "--variant", "highest")
            outcome.expectFailure(69, "1 of")
            try await place.get("/high/1.ts", into: "x", "--policy", "cache-only").expectDone()
            try await place.run("prefetch", url, "--variant", "best").expectFailure(64, "variant")
        }
    }
}
