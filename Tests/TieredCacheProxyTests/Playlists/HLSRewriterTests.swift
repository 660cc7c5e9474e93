import HTTPCaching
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct HLSRewriterTests {
    private func rewrite(
        _ text: String,
        at requested: String = "https://a.example/live/main.m3u8?s=1",
        final: String? = nil
    ) throws -> String {
        let rewriter = PlaylistRewriter(
            .hls,
            prefix: "/T/",
            requested: try TargetURI(requested),
            final: try TargetURI(final ?? requested)
        )
        let bytes = rewriter.rewrite(Array(text.utf8))
        return String(decoding: try #require(bytes, "it is refused"), as: UTF8.self)
    }

    @Test(
        "An address that would leave the proxy leads through it",
        arguments: [
            ("http://b.example/x.ts", "/T/http/b.example/x.ts"),
            (
                "HTTPS://b.example:8443/x.ts?q=http://c/#f",
                "/T/https/b.example:8443/x.ts?q=http://c/#f"
            ),
            ("//b.example/x.ts", "/T/https/b.example/x.ts"),
            ("/x/y.ts?q=1", "/T/https/a.example/x/y.ts?q=1"),
            ("seg%2F1.ts", "seg%2F1.ts"),
            ("../x/seg.ts", "../x/seg.ts"),
            ("a/./../../x.ts", "a/./../../x.ts"),
            // Nothing is above the root; behind the proxy there would be.
            ("../../x.ts?q=../a", "/T/https/a.example/x.ts?q=../a"),
            ("a/../../../b/..#f", "/T/https/a.example/#f"),
            ("x.ts?a=../../..", "x.ts?a=../../.."),
            ("?q=1", "?q=1"),
            ("data:text/plain,http://x", "data:text/plain,http://x"),
            ("skd://key", "skd://key"),
            ("http:relative", "http:relative"),
            ("", ""),
        ]
    )
    func lines(_ address: String, _ expected: String) throws {
        for end in ["\n", "\r\n", ""] {
            let text = "#EXTM3U\n#EXTINF:4,\n\(address)\(end)"
            #expect(try rewrite(text) == "#EXTM3U\n#EXTINF:4,\n\(expected)\(end)")
        }
    }

    @Test("What is not UTF-8 is escaped, as no player may ask for it; a byte order mark stays")
    func charsets() throws {
        let rewriter = PlaylistRewriter(
            .hls,
            prefix: "/T/",
            requested: try TargetURI("https://a.example/main.m3u8"),
            final: try TargetURI("https://a.example/main.m3u8")
        )
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let absolute = Array("#EXTM3U\n/caf".utf8) + [0xE9]
        let bytes = mark + absolute + Array("\ncaf".utf8) + [0xE9, 0x0A]
        #expect(
            rewriter.rewrite(bytes)
                == mark + Array("#EXTM3U\n/T/https/a.example/caf%E9\ncaf%E9\n".utf8)
        )
    }

    @Test(
        "Addresses in attributes lead through the proxy; the rest of the tag stays",
        arguments: [
            "#EXT-X-KEY:METHOD=AES-128,URI=\"<A>\",IV=0x1",
            "#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,KEYFORMAT=\"a,b\",URI=\"<A>\"",
            "#EXT-X-SESSION-DATA:DATA-ID=\"x=\",URI=\"<A>\"",
            "#EXT-X-MAP:URI=\"<A>\",BYTERANGE=\"720@0\"",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"URI=no\",URI=\"<A>\"",
            "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"<A>\"",
            "#EXT-X-PART:DURATION=0.3,INDEPENDENT=YES,URI=\"<A>\"",
            "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"<A>\",BYTERANGE-START=0",
            "#EXT-X-RENDITION-REPORT:URI=\"<A>\",LAST-MSN=3",
            "#EXT-X-CONTENT-STEERING:SERVER-URI=\"<A>\",PATHWAY-ID=\"x\"",
            "#EXT-X-DEFINE:NAME=\"cdn\",VALUE=\"<A>\"",
        ]
    )
    func attributes(_ tag: String) throws {
        let line =
            "#EXTM3U\r\n" + tag.replacing("<A>", with: "https://k.example/a,b?c=\u{e9}") + "\r\nx"
        let wanted = "#EXTM3U\r\n" + tag.replacing("<A>", with: "/T/https/k.example/a,b?c=\u{e9}")
        #expect(try rewrite(line) == wanted + "\r\nx")
        let relative = "#EXTM3U\n" + tag.replacing("<A>", with: "a/b.key") + "\n"
        #expect(try rewrite(relative) == relative)
    }

    @Test("What is no address of ours stays, byte for byte")
    func strangers() throws {
        let text = """
            #EXTM3U
            # a comment with http://x/
            #EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="http://x/"
            low/index.m3u8
            #EXT-X-UNKNOWN:URI="http://x/"
            #EXT-X-KEY:METHOD=AES-128,URI="http://unbalanced/
            #EXT-X-KEY:URI=http://unquoted/
            #EXT-X-BYTERANGE:100@200
            \u{0}
            """
        #expect(try rewrite(text) == text)
        #expect(try rewrite("not a playlist\nhttp://x/") == "not a playlist\nhttp://x/")
    }

    @Test("After a redirect, relative addresses mean the place that answered")
    func redirected() throws {
        let text = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"k.key\"\nseg.ts\n../b.ts#t=1\n#X\n"
        let got = try rewrite(
            text,
            at: "https://a.example/live/main.m3u8",
            final: "http://edge.example:81/v/7/main.m3u8?t=1"
        )
        let wanted = """
            #EXTM3U
            #EXT-X-KEY:METHOD=AES-128,URI="/T/http/edge.example:81/v/7/k.key"
            /T/http/edge.example:81/v/7/seg.ts
            /T/http/edge.example:81/v/b.ts#t=1
            #X

            """
        #expect(got == wanted)
        // A redirect within the folder changes nothing that a relative address means.
        let same = try rewrite(
            text,
            at: "https://a.example/v/a.m3u8",
            final: "https://a.example/v/b.m3u8?x"
        )
        #expect(same == text)
    }

    @Test("Foreign bytes of any kind are taken, and what has no address stays the same")
    func hostileBytes() throws {
        let requested = try TargetURI("https://a.example/x.m3u8")
        let rewriter = PlaylistRewriter(.hls, prefix: "/T/", requested: requested, final: requested)
        var random = SystemRandomNumberGenerator()
        let alphabet = Array("#EXT-X-KEY:URI=\"htp/,\r\n\u{0} \u{ff}".utf8)
        for _ in 0..<3000 {
            let count = Int.random(in: 0...80, using: &random)
            let tail = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            let bytes = Array("#EXTM3U\n#EXT-X-KEY:".utf8) + tail
            let got = try #require(rewriter.rewrite(bytes))
            #expect(got.count >= bytes.count)
            #expect(got.filter { $0 == 0x0A } == bytes.filter { $0 == 0x0A })
        }
        let huge = Array("#EXTM3U\n".utf8) + [UInt8](repeating: 0x41, count: 4 << 20)
        #expect(rewriter.rewrite(huge) == huge)
    }

    @Test("Variables are put in where an address has them, and the definitions stay")
    func variables() throws {
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:NAME="host",VALUE="c.example"
            #EXT-X-DEFINE:NAME="root",VALUE="/v/7"
            #EXT-X-DEFINE:NAME="all",VALUE="//d.example/x"
            #EXT-X-DEFINE:QUERYPARAM="s"
            #EXT-X-KEY:METHOD=AES-128,URI="https://{$host}/k"
            {$root}/1.ts?s={$s}
            {$all}/2.ts
            rel/{$s}/3.ts
            {$later}/4.ts
            #EXT-X-DEFINE:NAME="later",VALUE="x"
            {$later}/5.ts
            """
        let wanted = """
            #EXTM3U
            #EXT-X-DEFINE:NAME="host",VALUE="c.example"
            #EXT-X-DEFINE:NAME="root",VALUE="/v/7"
            #EXT-X-DEFINE:NAME="all",VALUE="//d.example/x"
            #EXT-X-DEFINE:QUERYPARAM="s"
            #EXT-X-KEY:METHOD=AES-128,URI="/T/https/c.example/k"
            /T/https/a.example/v/7/1.ts?s=1
            /T/https/d.example/x/2.ts
            rel/1/3.ts
            {$later}/4.ts
            #EXT-X-DEFINE:NAME="later",VALUE="x"
            x/5.ts
            """
        #expect(try rewrite(text) == wanted)
    }

    @Test("A parameter that only the place behind a redirect has is told to the player")
    func redirectedParameter() throws {
        let got = try rewrite(
            "#EXTM3U\r\n#EXT-X-DEFINE:QUERYPARAM=\"t\"\r\n1.ts?t={$t}\r\n",
            at: "https://a.example/m.m3u8",
            final: "https://a.example/n.m3u8?t=9"
        )
        #expect(got == "#EXTM3U\r\n#EXT-X-DEFINE:NAME=\"t\",VALUE=\"9\"\r\n1.ts?t=9\r\n")
    }
}
