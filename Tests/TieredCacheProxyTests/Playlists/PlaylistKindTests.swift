import HTTPTypes
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct PlaylistKindTests {
    @Test("Type or extension let expect a playlist, and its first bytes decide")
    func detection() {
        typealias Kind = PlaylistKind
        #expect(
            Kind.expected(contentType: "application/vnd.apple.mpegURL; a=b", path: "/x") == .hls
        )
        #expect(Kind.expected(contentType: "audio/x-mpegurl", path: "/x") == .hls)
        #expect(Kind.expected(contentType: "application/dash+xml", path: "/x") == .dash)
        #expect(Kind.expected(contentType: "text/plain", path: "/x.M3U8") == .hls)
        #expect(Kind.expected(contentType: nil, path: "/x.mpd") == .dash)
        #expect(Kind.expected(contentType: "video/mp4", path: "/x.mp4") == nil)
        #expect(Kind.hls.isBeginning(of: "#EXTM3U\n".utf8))
        #expect(Kind.hls.isBeginning(of: "\u{FEFF}#EXTM3U\n".utf8))
        #expect(!Kind.hls.isBeginning(of: "<html>".utf8))
        #expect(Kind.dash.isBeginning(of: "<?xml?>\n<dash:MPD xmlns:dash='x'>".utf8))
        #expect(!Kind.dash.isBeginning(of: "<html>MPD".utf8))
    }

    @Test(
        "Where the head says nothing the first bytes tell",
        arguments: [
            nil, "application/octet-stream", "text/plain; charset=x", "TEXT/HTML",
            "application/xml", "video/mp4", "audio/mpeg", "image/png",
        ]
    )
    func untold(contentType: String?) {
        let isTold = ["video", "audio", "image"].contains { contentType?.hasPrefix($0) == true }
        for (text, kind) in [
            ("#EXTM3U\n", PlaylistKind.hls), ("\u{FEFF}#EXTM3U\r\n", .hls),
            ("<?xml?><MPD>", .dash), ("#EXT", nil), ("", nil), ("a film", nil),
            ("#EXTM3U x=1\n", .hls), ("#EXTM3U8\n", nil), ("#EXTM3U\0", nil),
        ] {
            let found = PlaylistKind.of(Array(text.utf8), contentType: contentType, path: "/x")
            #expect(found == (isTold ? nil : kind), "\(text)")
        }
        // What is suggested is that or nothing.
        #expect(PlaylistKind.of("<MPD>".utf8, contentType: contentType, path: "/x.m3u") == nil)
    }

    @Test("A running playlist is never frozen, an ended one is kept as HTTP says")
    func freshness() {
        func age(_ text: String, _ kind: PlaylistKind, _ control: String?) -> Int? {
            var fields = HTTPFields()
            fields[.cacheControl] = control
            return PlaylistFacts(Array(text.utf8), kind: kind).maximumAge(fields)
        }
        let running = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n"
        #expect(age(running, .hls, nil) == 0)
        #expect(age(running, .hls, "max-age=3600") == 3)
        // Parts of segments come several times in a second.
        #expect(age(running + "#EXT-X-PART-INF:PART-TARGET=0.3\n", .hls, "max-age=3600") == 0)
        #expect(age(running + "#EXT-X-ENDLIST", .hls, nil) == 0)
        #expect(age(running + "#EXT-X-ENDLIST", .hls, "max-age=60") == nil)
        #expect(age("#EXTM3U\n#EXT-X-STREAM-INF:\na", .hls, "max-age=60") == nil)
        #expect(age("#EXTM3U\n#EXT-X-TARGETDURATION:x", .hls, "max-age=60") == 0)
        #expect(age("<MPD type=\"dynamic\">", .dash, "max-age=60") == 0)
        #expect(age("<MPD type=\"static\">", .dash, "max-age=60") == nil)
    }
}
