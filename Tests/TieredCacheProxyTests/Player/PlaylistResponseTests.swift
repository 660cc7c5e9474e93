import HTTPCaching
import HTTPTypes
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlaylistResponseTests {
    private func playlist(_ text: String, _ control: String? = nil) -> OriginResource {
        var resource = OriginResource(
            .bytes(Array(text.utf8)),
            contentType: "application/vnd.apple.mpegurl"
        )
        resource.fields[.cacheControl] = control
        return resource
    }

    @Test func addressesLeadThroughTheProxy() async throws {
        try await ProxyFixture.run { fixture in
            let text = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/key\"\nhttps://h/1.ts\n2.ts\n"
            fixture.origin.serve("/a/list.m3u8", playlist(text, "max-age=60"))
            let answer = try await fixture.ask("/a/list.m3u8")
            #expect(answer.status == 200)
            #expect(answer["content-type"] == "application/vnd.apple.mpegurl")
            let origin = "http://127.0.0.1:\(fixture.proxy.port)"
            let base = fixture.base.dropFirst(origin.count)
            let key = "\(base)http/127.0.0.1:\(fixture.origin.port)/key"
            #expect(
                answer.text
                    == "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"\(key)\"\n"
                    + "\(base)https/h/1.ts\n2.ts\n"
            )
            let tag = try #require(answer["etag"])
            #expect(try await fixture.ask("/a/list.m3u8", "If-None-Match: \(tag)").status == 304)
            let part = try await fixture.ask("/a/list.m3u8", "Range: bytes=0-6")
            #expect(part.status == 206)
            #expect(part.text == "#EXTM3U")
            let head = try await fixture.ask("/a/list.m3u8", method: "HEAD")
            #expect(head["content-length"] == answer["content-length"])
            #expect(head["etag"] == tag)
        }
    }

    @Test func withoutExplicitFreshnessItIsAskedForEachTime() async throws {
        try await ProxyFixture.run { fixture in
            var old = playlist("#EXTM3U\n#EXT-X-TARGETDURATION:4\n1.ts\n")
            old.lastModified = "Wed, 21 Oct 2015 07:28:00 GMT"
            fixture.origin.serve("/live.m3u8", old)
            _ = try await fixture.ask("/live.m3u8")
            let before = fixture.requests("/live.m3u8")
            var new = playlist("#EXTM3U\n#EXT-X-TARGETDURATION:4\n2.ts\n")
            new.entityTag = .custom("\"new\"")
            fixture.origin.serve("/live.m3u8", new)
            let answer = try await fixture.ask("/live.m3u8")
            #expect(answer.text.hasSuffix("2.ts\n"))
            #expect(fixture.requests("/live.m3u8") > before)
        }
    }

    @Test(arguments: ["/live.m3u8", "/live", "/live.mpd"])
    func aRunningPlaylistIsNeverFrozen(path: String) async throws {
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        try await ProxyFixture.run(cacheTime: time) {
            $0.timeSource = time
        } _: { fixture in
            for round in 0..<5 {
                var list = playlist(
                    "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(round).ts\n",
                    "public, max-age=3600, immutable"
                )
                if path.hasSuffix("mpd") {
                    list = .text(
                        "<MPD type=\"dynamic\"><Period id=\"\(round)\"/></MPD>",
                        contentType: "application/dash+xml",
                        cacheControl: "public, max-age=3600"
                    )
                }
                list.lastModified = "Wed, 21 Oct 2015 07:28:00 GMT"
                fixture.origin.serve(path, list)
                // As long as a player waits at least (RFC 8216 §6.3.4).
                time.advance(by: .seconds(2))
                for field in ["X: y", "Range: bytes=0-"] {
                    let answer = try await fixture.ask(path, field)
                    #expect(
                        answer.text.contains("\(round).ts") || answer.text.contains("\"\(round)\"")
                    )
                }
                let head = try await fixture.ask(path, method: "HEAD")
                #expect(head.status == 200)
            }
        }
    }

    @Test("A list that only its first bytes tell of has another tag than its parts as they are")
    func untoldParts() async throws {
        try await ProxyFixture.run { fixture in
            var list = OriginResource.text(
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n/1.ts\n#EXT-X-ENDLIST\n",
                contentType: "application/octet-stream"
            )
            list.fields[.cacheControl] = "max-age=60"
            list.lastModified = "Wed, 21 Oct 2015 07:28:00 GMT"
            fixture.origin.serve("/list", list)
            for _ in 0..<2 {
                let part = try await fixture.ask("/list", "Range: bytes=30-")
                let whole = try await fixture.ask("/list")
                #expect(whole.text.contains("/http/127.0.0.1:\(fixture.origin.port)/1.ts"))
                let tag = try #require(whole["etag"])
                #expect(part["etag"] != tag && whole["last-modified"] == nil)
                let start = try await fixture.ask("/list", "Range: bytes=0-29")
                #expect(start["etag"] == tag)
                // Who has the beginning of the rewritten one gets the rest of that.
                let rest = try await fixture.ask("/list", "Range: bytes=30-", "If-Range: \(tag)")
                #expect(rest.status == 206 && rest["etag"] == tag)
                #expect(start.body + rest.body == whole.body)
                let again = try await fixture.ask("/list", "If-None-Match: \(tag)")
                #expect(again.status == 304)
            }
        }
    }

    /// A day ago, so that a guessed lifetime would be 2.4 hours.
    @Test(arguments: [("text/html", "hls"), ("application/octet-stream", "dash")], [1, 1 << 20])
    func aRunningListThatSaysNothingOfItselfIsNeverFrozen(
        list: (type: String, kind: String),
        memoryLimit: Int64
    ) async throws {
        let (type, kind) = list
        let time = ManualTimeSource(wall: SystemTimeSource().wallTime())
        try await ProxyFixture.run(cacheTime: time, memoryLimit: memoryLimit) {
            $0.timeSource = time
        } _: { fixture in
            for round in 0..<4 {
                let text =
                    kind == "hls"
                    ? "#EXTM3U\n#EXT-X-TARGETDURATION:4\n/\(round).ts\n"
                    : "<?xml?><MPD type=\"dynamic\"><BaseURL>/\(round).ts</BaseURL></MPD>"
                var list = OriginResource.text(text, contentType: type)
                list.entityTag = .custom("\"\(round)\"")
                let yesterday = time.wallTime().advanced(by: .seconds(-86_400))
                list.lastModified = HTTPDate.format(yesterday)
                fixture.origin.serve("/live", list)
                time.advance(by: .seconds(2))
                var lengths: Set<String?> = []
                for field in ["X: y", "Range: bytes=0-", "X: y"] {
                    let answer = try await fixture.ask("/live", field)
                    #expect(
                        answer.text.contains(
                            "/http/127.0.0.1:\(fixture.origin.port)/\(round).ts"
                        ),
                        "\(answer.text)"
                    )
                    lengths.insert(answer["content-length"])
                }
                let head = try await fixture.ask("/live", method: "HEAD")
                lengths.insert(head["content-length"])
                #expect(head.status == 200 && lengths.count == 1)
            }
        }
    }

    @Test("What begins otherwise is answered as it is, and stored")
    func whatIsNoListStaysAHit() async throws {
        for (length, text) in [(5, "#EXT\n"), (300_000, "<html>"), (300_000, "film")] {
            try await ProxyFixture.run { fixture in
                let rest = String(repeating: ".", count: length - text.utf8.count)
                var body = OriginResource.text(text + rest, contentType: nil)
                body.fields[.cacheControl] = "max-age=600"
                fixture.origin.serve("/a", body)
                for _ in 0..<3 {
                    let answer = try await fixture.ask("/a", "Range: bytes=0-")
                    #expect(answer.status == 206 && answer.text == text + rest)
                }
                #expect(fixture.requests("/a") <= 2)
            }
        }
    }

    @Test func aBlockingReloadWaitsAndKeepsNobodyElseWaiting() async throws {
        try await ProxyFixture.run { fixture in
            let text =
                "#EXTM3U\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n#EXT-X-PART-INF:"
                + "PART-TARGET=0.3\n#EXT-X-PART:DURATION=0.3,URI=\"/p1.mp4\"\n"
            let next = text + "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"/p2.mp4\"\n"
            let gate = OriginGate()
            let late = OriginBehaviour.faithful.with { $0.gate = gate }
            fixture.origin.serve("/live.m3u8", playlist(text, "max-age=60"))
            let blocking = "/live.m3u8?_HLS_msn=7&_HLS_part=1"
            fixture.origin.serve(blocking, playlist(next, "max-age=60"), OriginScript(late))
            async let waiting = fixture.ask(blocking)
            await fixture.origin.waitUntil { log in
                log.exchanges.contains { $0.target == blocking }
            }
            let now = try await fixture.ask("/live.m3u8")
            #expect(now.status == 200 && !now.text.contains("HINT"))
            gate.open()
            let later = try await waiting
            let base = fixture.base.dropFirst("http://127.0.0.1:\(fixture.proxy.port)".count)
            let origin = "\(base)http/127.0.0.1:\(fixture.origin.port)"
            #expect(later.text.contains("PART:DURATION=0.3,URI=\"\(origin)/p1.mp4\""))
            #expect(later.text.contains("HINT:TYPE=PART,URI=\"\(origin)/p2.mp4\""))
            let asked = fixture.origin.log.exchanges.filter { $0.target == blocking }
            #expect(asked.count == 1)
        }
    }

    @Test func aCodedPlaylistIsRewrittenAllTheSame() async throws {
        try await ProxyFixture.run { fixture in
            let list = playlist("#EXTM3U\n/1.ts\n#EXT-X-ENDLIST\n", "max-age=60")
            fixture.origin.serve("/a.m3u8", list, OriginScript(.gzipCoded))
            for _ in 0..<2 {
                let answer = try await fixture.ask("/a.m3u8")
                #expect(answer["content-encoding"] == nil)
                #expect(answer.text.contains("/http/127.0.0.1:\(fixture.origin.port)/1.ts\n"))
            }
            #expect(fixture.requests("/a.m3u8") == 1)
        }
    }

    @Test func whatIsNoPlaylistIsLeftAlone() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a.m3u8", .fresh(100_000))
            let answer = try await fixture.ask("/a.m3u8", "Range: bytes=5-9")
            #expect(answer.status == 206)
            #expect(answer["content-range"] == "bytes 5-9/100000")
        }
    }

    @Test func theTimeForAFirstByteHoldsForPlaylists() async throws {
        try await ProxyFixture.run {
            $0.originTimeout = .milliseconds(50)
        } _: { fixture in
            let gate = OriginGate()
            let silent = OriginScript(OriginBehaviour.faithful.with { $0.gate = gate })
            fixture.origin.serve("/a.m3u8", playlist("#EXTM3U\n"), silent)
            #expect(try await fixture.ask("/a.m3u8").status == 504)
            fixture.origin.serve("/b.m3u8", OriginScript(.dropped()))
            let status = try await fixture.ask("/b.m3u8").status
            #expect(status == 502 || status == 504)
            gate.open()
        }
    }

    @Test func aStoredPlaylistAnswersForASilentOrigin() async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        let gate = OriginGate()
        let silent = OriginBehaviour.faithful.with { $0.gate = gate }
        origin.serve("/a.m3u8", playlist("#EXTM3U\n1.ts\n"), .first(1, .faithful).then(silent))
        let first = try await ProxyFixture(origin: origin, files: files)
        #expect(try await first.ask("/a.m3u8").status == 200)
        await first.stop()
        let second = try await ProxyFixture(origin: origin, files: files) {
            $0.originTimeout = .milliseconds(50)
        }
        let answer = try await second.ask("/a.m3u8")
        #expect(answer.status == 200)
        #expect(answer.text == "#EXTM3U\n1.ts\n")
        gate.open()
        await second.stop()
        await origin.stop()
    }

    @Test func keysThatPlaylistsNameAreAskedForAgain() async throws {
        try await ProxyFixture.run { fixture in
            let text = "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"/key\"\n1.ts\n#EXT-X-ENDLIST\n"
            fixture.origin.serve("/a/list.m3u8", playlist(text, "max-age=60"))
            var key = OriginResource.text(
                "0123456789abcdef",
                contentType: "application/octet-stream"
            )
            key.lastModified = "Wed, 21 Oct 2015 07:28:00 GMT"
            fixture.origin.serve("/key", key)
            _ = try await fixture.ask("/a/list.m3u8")
            #expect(try await fixture.ask("/key").text == "0123456789abcdef")
            fixture.origin.serve("/key", .text("fedcba9876543210"))
            #expect(try await fixture.ask("/key").text == "fedcba9876543210")
            let part = try await fixture.ask("/key", "Range: bytes=0-3")
            #expect(part.status == 206 && part.text == "fedc")
        }
    }
}
