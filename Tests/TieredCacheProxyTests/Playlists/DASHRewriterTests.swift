import HTTPCaching
import Testing

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct DASHRewriterTests {
    private func rewrite(
        _ text: String,
        final: String = "https://a.example/v/main.mpd"
    ) throws -> String {
        let rewriter = PlaylistRewriter(
            .dash,
            prefix: "/T/",
            requested: try TargetURI("https://a.example/v/main.mpd"),
            final: try TargetURI(final)
        )
        let bytes = rewriter.rewrite(Array(text.utf8))
        return String(decoding: try #require(bytes, "it is refused"), as: UTF8.self)
    }

    private let manifest = """
        <?xml version="1.0"?>
        <!-- <BaseURL>http://no.example/</BaseURL> -->
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">
          <ProgramInformation><Title>http://t.example/</Title></ProgramInformation>
          <Period>
            <BaseURL serviceLocation="http://s.example/"> @https://cdn.example/x/ </BaseURL>
            <BaseURL><![CDATA[@http://cdn.example/a?b&c]]></BaseURL>
            <AdaptationSet>
              <SegmentTemplate media='@https://cdn.example/$Number$.m4s' initialization="i-$Bandwidth$.mp4"/>
              <SegmentList>
                <Initialization sourceURL="^/init.mp4" range="0-1"/>
                <SegmentURL mediaRange="2-3" media="@//cdn.example/s.m4s"/>
              </SegmentList>
            </AdaptationSet>
          </Period>
          <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="http://time.example/"/>
        </MPD>

        """

    @Test("Addresses lead through the proxy, all else stays")
    func addresses() throws {
        let given = manifest.replacing("@", with: "").replacing("^", with: "")
        let wanted = manifest.replacing("@https://", with: "/T/https/")
            .replacing("^/", with: "/T/https/cdn.example/")
            .replacing("@http://", with: "/T/http/")
            .replacing("@//", with: "/T/https/")
            .replacing("@/", with: "/T/https/a.example/")
        #expect(try rewrite(given) == wanted)
    }

    @Test("After a redirect the base of relative addresses is the place that answered")
    func redirected() throws {
        let text = "<MPD><ProgramInformation/><Period><BaseURL>video/</BaseURL></Period></MPD>"
        #expect(
            try rewrite(text, final: "http://edge.example/a&b/m.mpd")
                == "<MPD><ProgramInformation/><BaseURL>/T/http/edge.example/a&amp;b/</BaseURL>"
                + "<Period><BaseURL>video/</BaseURL></Period></MPD>"
        )
        let based = "<MPD><BaseURL>video/</BaseURL><Period/></MPD>"
        #expect(
            try rewrite(based, final: "http://edge.example/a/m.mpd")
                == "<MPD><BaseURL>/T/http/edge.example/a/video/</BaseURL><Period/></MPD>"
        )
    }

    @Test("What begins with a slash is at the host of the nearest base around it")
    func bases() throws {
        let text = """
            <MPD><Location>/l.mpd</Location><BaseURL>http://b.example/a&amp;b/</BaseURL>
            <BaseURL>/alternative/</BaseURL>
            <Period><BaseURL>/p/</BaseURL><BaseURL>http://second.example/</BaseURL>
            <AdaptationSet><SegmentTemplate media="/1-$Number$" initialization="i"/>
            <Representation><BaseURL>//c.example/r/</BaseURL><SegmentList>
            <Initialization sourceURL="/2"/><SegmentURL media="/3"/></SegmentList></Representation>
            <Representation><BaseURL>rel/</BaseURL><SegmentTemplate media="/4"/></Representation>
            </AdaptationSet></Period>
            <Period href="/5"><BaseURL>https://d.example</BaseURL><AdaptationSet>
            <SegmentTemplate media="/6"/></AdaptationSet></Period></MPD>
            """
        let wanted = text.replacing(">/l.mpd", with: ">/T/https/a.example/l.mpd")
            .replacing("http://b.example", with: "/T/http/b.example")
            .replacing(">/alternative", with: ">/T/https/a.example/alternative")
            .replacing(">/p/", with: ">/T/http/b.example/p/")
            .replacing("http://second", with: "/T/http/second")
            .replacing("\"/1-", with: "\"/T/http/b.example/1-")
            .replacing("//c.example", with: "/T/http/c.example")
            .replacing("\"/2", with: "\"/T/http/c.example/2")
            .replacing("\"/3", with: "\"/T/http/c.example/3")
            .replacing("\"/4", with: "\"/T/http/b.example/4")
            .replacing("\"/5", with: "\"/T/http/b.example/5")
            .replacing("https://d.example", with: "/T/https/d.example")
            .replacing("\"/6", with: "\"/T/https/d.example/6")
        #expect(try rewrite(text) == wanted)
    }

    @Test("Long and deep bases make a manifest no longer than it may be")
    func hostileBases() throws {
        let segments = String(repeating: "<SegmentURL media=\"/\"/>", count: 20_000)
        let long = String(repeating: "a", count: 8000)
        let wide = "<MPD><BaseURL>http://\(long)/</BaseURL><Period>\(segments)</Period></MPD>"
        // Each would get 8,000 bytes more.
        let home = try TargetURI("https://a.example/v/main.mpd")
        let rewriter = PlaylistRewriter(.dash, prefix: "/T/", requested: home, final: home)
        let isRefused = rewriter.rewrite(Array(wide.utf8)) == nil
        #expect(isRefused)
        let longer = wide.replacing(long, with: long + long)
        #expect(try rewrite(longer).contains("media=\"/T/https/a.example/\""))
        let levels = 50_000
        let deep =
            "<MPD>" + String(repeating: "<a><BaseURL>b/</BaseURL>", count: levels)
            + "<SegmentURL media=\"/x\"/>" + String(repeating: "</a>", count: levels) + "</MPD>"
        let isKept = try rewrite(deep) == deep.replacing("\"/x", with: "\"/T/https/a.example/x")
        #expect(isKept)
    }

    @Test(
        "What is not well-formed is passed on",
        arguments: [
            "<MPD", "<MPD><BaseURL>", "<MPD><BaseURL><![CDATA[http://x",
            "<MPD a='><BaseURL>http://x/",
            "<MPD><!-- ", "<MPD><><><//></", "<MPD></></></MPD><BaseURL", "<MPD =\"\" a= b='c'/>",
        ]
    )
    func broken(_ text: String) throws {
        #expect(try rewrite(text) == text)
    }

    @Test("Bytes of any kind are taken")
    func hostileBytes() throws {
        let target = try TargetURI("https://a.example/x.mpd")
        let rewriter = PlaylistRewriter(.dash, prefix: "/T/", requested: target, final: target)
        var random = SystemRandomNumberGenerator()
        let alphabet = Array("<>/\"'=! -[]?&BaseURL MPD\u{0}\u{ff}".utf8)
        for _ in 0..<3000 {
            let count = Int.random(in: 0...80, using: &random)
            let tail = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            let bytes = Array("<MPD>".utf8) + tail
            #expect(try #require(rewriter.rewrite(bytes)).count >= bytes.count)
        }
    }
}
