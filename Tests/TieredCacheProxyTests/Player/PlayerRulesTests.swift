import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// The rules for hosts and the fields of players, in what the proxy asks origins for.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlayerRulesTests {
    private func rules(_ lines: String...) throws -> HostRules {
        var rules = HostRules()
        for line in lines { try rules.add(line) }
        return rules
    }

    private func name(_ text: String) throws -> HTTPField.Name {
        try #require(HTTPField.Name(text))
    }

    @Test("A playlist, its key and its segments are asked for with the fields of the rules")
    func fields() async throws {
        let rules = try rules("header=127.0.0.1 X-Token: yes", "header=other.example X-Other: yes")
        try await ProxyFixture.run {
            $0.rules = rules
        } _: { fixture in
            let text = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n1.ts\n"
            fixture.origin.serve("/list.m3u8", .text(text, contentType: "application/x-mpegurl"))
            fixture.origin.serve("/key", .text("0123456789abcdef", contentType: "binary/key"))
            fixture.origin.serve("/1.ts", .fresh(200_000))
            for path in ["/list.m3u8", "/key", "/1.ts", "/1.ts"] {
                #expect(try await fixture.ask(path).status == 200)
                let last = try #require(fixture.origin.log.exchanges(for: path).last)
                #expect(last.fields[try name("X-Token")] == "yes")
                #expect(!last.fields.contains(try name("X-Other")))
            }
            #expect(fixture.requests("/1.ts") == 1)
        }
    }

    @Test("URLs that differ in parameters of a rule alone are one entry")
    func keys() async throws {
        let rules = try rules("key=127.0.0.1 sign")
        try await ProxyFixture.run {
            $0.rules = rules
        } _: { fixture in
            let film = OriginResource.fresh(3_000_000)
            let bytes = film.generatedBody?.bytes(in: 0..<3_000_000)
            fixture.origin.serve("/a.mp4", film)
            for path in ["/a.mp4?sign=1", "/a.mp4?sign=2", "/a.mp4?sign=2", "/a.mp4"] {
                #expect(try await firstDifference(fixture.ask(path).body, bytes) == nil)
            }
            #expect(Set(fixture.origin.log.exchanges(for: "/a.mp4").map(\.target)).count == 1)
            let tail = try await fixture.ask("/a.mp4?sign=3", "Range: bytes=2999990-")
            #expect(tail.status == 206 && tail.body == bytes?.suffix(10))
            #expect(fixture.origin.log.bodyBytesWritten(for: "/a.mp4") == 3_000_000)
        }
    }

    @Test("Playlists lead past the proxy to a host that is left alone, and so does the proxy")
    func exclusions() async throws {
        let rules = try rules("exclude=cdn.example")
        try await ProxyFixture.run {
            $0.rules = rules
        } _: { fixture in
            let text = "#EXTM3U\nhttps://a.cdn.example/1.ts\n//cdn.example/2.ts\nhttps://b/3.ts\n"
            fixture.origin.serve("/list.m3u8", .text(text, contentType: "application/x-mpegurl"))
            let answer = try await fixture.ask("/list.m3u8")
            let prefix = fixture.base.dropFirst("http://127.0.0.1:\(fixture.proxy.port)".count)
            #expect(
                answer.text == "#EXTM3U\nhttps://a.cdn.example/1.ts\nhttp://cdn.example/2.ts\n"
                    + "\(prefix)https/b/3.ts\n"
            )
            let other = try await fixture.request("GET", "https/a.cdn.example/1.ts?x=/y")
            #expect(other.status == 307)
            #expect(other["location"] == "https://a.cdn.example/1.ts?x=/y")
        }
    }

    @Test("What a redirect brings from a host that is left alone is passed on, and not stored")
    func redirects() async throws {
        let rules = try rules("exclude=localhost")
        try await ProxyFixture.run {
            $0.rules = rules
        } _: { fixture in
            let film = OriginResource.fresh(3_000_000)
            let bytes = film.generatedBody?.bytes(in: 0..<3_000_000)
            let other = fixture.origin.url("/film").replacing("127.0.0.1", with: "localhost")
            fixture.origin.serve("/film", film)
            fixture.origin.serve("/moved.mp4", OriginScript(.redirect(to: other)))
            for count in [1, 2] as [Int64] {
                #expect(try await firstDifference(fixture.ask("/moved.mp4").body, bytes) == nil)
                #expect(fixture.origin.log.bodyBytesWritten(for: "/film") >= count * 3_000_000)
            }
            let tail = try await fixture.ask("/moved.mp4", "Range: bytes=2999990-")
            #expect(tail.status == 206 && tail.body == bytes?.suffix(10))
            #expect(try await fixture.cache.entries().isEmpty)
        }
    }

    @Test("Rules that are replaced hold for the next request, what was prepared is forgotten")
    func replacement() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.mp4", .fresh(5000))
            for _ in 0..<3 { #expect(try await fixture.ask("/a.mp4?sign=1").status == 200) }
            #expect(fixture.requests("/a.mp4") == 1)
            fixture.proxy.setRules(try rules("key=* sign"))
            for _ in 0..<2 { #expect(try await fixture.ask("/a.mp4?sign=1").status == 200) }
            #expect(fixture.requests("/a.mp4") == 2)
            fixture.proxy.setRules(try rules("exclude=*"))
            let answer = try await fixture.ask("/a.mp4?sign=1")
            #expect(answer.status == 307)
            #expect(answer["location"] == fixture.origin.url("/a.mp4?sign=1"))
            fixture.proxy.setRules(HostRules())
            #expect(try await fixture.ask("/a.mp4?sign=1").status == 200)
            #expect(fixture.requests("/a.mp4") == 2)
        }
    }

    private static let sent = [
        "Referer: http://page/", "User-Agent: Player/1", "X-Token: yes", "Cookie: a=1",
        "Authorization: Basic YTpi", "Accept: text/html", "Accept-Language: de", "Icy-MetaData: 1",
        "Cache-Control: no-cache", "Pragma: no-cache", "Range: bytes=0-", "If-None-Match: \"x\"",
        "Accept-Encoding: gzip", "Connection: X-Hop", "X-Hop: 1", "Via: 1.1 x", "Origin: http://x",
    ]

    @Test("The fields of players that matter to an origin are sent on where that is wanted")
    func playerFields() async throws {
        for (relays, isBrowser) in [(true, false), (false, false), (true, true)] {
            try await ProxyFixture.run {
                $0.relaysPlayerFields = relays
            } _: { fixture in
                fixture.origin.serve("/a.mp4", .fresh(5000))
                let lines = Self.sent + (isBrowser ? ["Sec-Fetch-Dest: video"] : [])
                let (port, target) = (fixture.proxy.port, try fixture.target("/a.mp4"))
                let answer = try await onThread {
                    let connection = try RawConnection(port: port)
                    let head = ["GET \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"] + lines
                    try connection.send(head.joined(separator: "\r\n") + "\r\n\r\n")
                    return try connection.receiveResponse()
                }
                #expect(answer.status == 206)
                let fields = try #require(fixture.origin.log.exchanges(for: "/a.mp4").last).fields
                #expect(fields[.authorization] == "Basic YTpi")
                #expect(fields[.cookie] == (isBrowser ? nil : "a=1"))
                let isRelayed = relays && !isBrowser
                #expect(fields[.referer] == (isRelayed ? "http://page/" : nil))
                #expect((fields[.userAgent] == "Player/1") == isRelayed)
                #expect(fields[try name("X-Token")] == (isRelayed ? "yes" : nil))
                #expect(fields[.acceptLanguage] == "de" && fields[.origin] == "http://x")
                let own = ["Icy-MetaData", "X-Hop", "Pragma", "Via"]
                for other in own {
                    #expect(!fields.contains(try name(other)), "\(other)")
                }
                #expect(fields[.accept] == "*/*" && fields[.acceptEncoding] == "identity")
                #expect(fields[.cacheControl] == nil && fields[.ifNoneMatch] == nil)
            }
        }
    }

    @Test("A response that depends on a player's fields is not given to another player")
    func variants() async throws {
        try await ProxyFixture.run {
            $0.relaysPlayerFields = true
        } _: { fixture in
            var film = OriginResource.fresh(5000)
            film.fields[.vary] = "User-Agent"
            fixture.origin.serve("/a.mp4", film)
            var expected = 0
            for agent in ["", "A", "B"] {
                expected += 1
                for _ in 0..<3 {
                    let fields = agent.isEmpty ? "X-None: 1" : "User-Agent: \(agent)"
                    let answer = try await fixture.ask("/a.mp4", fields)
                    #expect(answer.status == 200)
                    #expect(fixture.requests("/a.mp4") == expected, "\(agent)")
                }
            }
        }
    }

    @Test("What answers after a redirect from a host that is left alone is named as it is")
    func redirectedAddresses() throws {
        let rewriter = PlaylistRewriter(
            .hls,
            prefix: "/T/",
            requested: try .init("https://a.example/x/list.m3u8"),
            final: try .init("https://cdn.example/y/list.m3u8"),
            rules: try rules("exclude=cdn.example")
        )
        let text = "#EXTM3U\n1.ts\n/2.ts\n//cdn.example:1/3.ts\nhttp://a.example/4.ts\nhttp://[/5\n"
        let bytes = try #require(rewriter.rewrite(Array(text.utf8)))
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == "#EXTM3U\nhttps://cdn.example/y/1.ts\nhttps://cdn.example/2.ts\n"
                + "https://cdn.example:1/3.ts\n/T/http/a.example/4.ts\nhttp://[/5\n"
        )
    }

    @Test("A URL whose host cannot be read is left as it is where hosts are left alone")
    func unreadableAddresses() throws {
        let home = try TargetURI("https://a.example/list.m3u8")
        let lines = ["http://[/1.ts", "http://a b/2.ts", "https://$Host$.cdn.example/3.ts"]
        for (rule, prefix) in [
            ("exclude=*", "http"), ("exclude=b", "http"), ("key=b x", "/T/http"),
        ] {
            let rewriter = PlaylistRewriter(
                .hls,
                prefix: "/T/",
                requested: home,
                final: home,
                rules: try rules(rule)
            )
            let text = "#EXTM3U\n" + lines.joined(separator: "\n") + "\n"
            let bytes = rewriter.rewrite(Array(text.utf8)) ?? Array(text.utf8)
            let addresses = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
                .dropFirst()
            #expect(addresses.count == 3)
            #expect(addresses.allSatisfy { $0.hasPrefix(prefix) }, "\(rule): \(addresses)")
        }
    }

    @Test("Bases of a manifest at a host that is left alone lead past the proxy")
    func manifests() throws {
        let home = try TargetURI("https://a.example/x/film.mpd")
        let rewriter = PlaylistRewriter(
            .dash,
            prefix: "/T/",
            requested: home,
            final: home,
            rules: try rules("exclude=cdn.example")
        )
        let text =
            "<MPD><BaseURL>https://cdn.example/y/</BaseURL><Period><AdaptationSet>"
            + "<SegmentTemplate media=\"/$Number$\"/></AdaptationSet></Period></MPD>"
        let bytes = try #require(rewriter.rewrite(Array(text.utf8)))
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == text.replacing("\"/$Number$\"", with: "\"https://cdn.example/$Number$\"")
        )
    }
}
