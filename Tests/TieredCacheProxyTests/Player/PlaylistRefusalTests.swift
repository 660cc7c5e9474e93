import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// A small playlist costs little, whatever it says, and no other response waits for it.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct PlaylistRefusalTests {
    private func serve(_ fixture: ProxyFixture, _ path: String, _ text: String) {
        let type = path.hasSuffix("mpd") ? "application/dash+xml" : "application/x-mpegurl"
        fixture.origin.serve(path, .text(text, contentType: type, cacheControl: "max-age=60"))
    }

    @Test(
        "One that would become out of proportion to its length is refused, from the cache as well",
        arguments: ["/a.m3u8", "/a.mpd"]
    )
    func refusal(_ path: String) async throws {
        try await ProxyFixture.run { fixture in
            let value = String(repeating: "v", count: 4000)
            let define = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"/\(value)\"\n"
            let list = define + String(repeating: "{$a}{$a}{$a}\n", count: 2000)
            let base = "<BaseURL>/\(value)</BaseURL>"
            let manifest =
                "<MPD>\(base)" + String(repeating: "<a><BaseURL>x</BaseURL></a>", count: 20_000)
            serve(fixture, path, path == "/a.mpd" ? manifest : list)
            for _ in 0..<2 {
                let answer = try await fixture.ask(path)
                #expect(answer.status == 502 && answer.body.isEmpty)
            }
        }
    }

    @Test("Real playlists are far from it: a day of segments with a long address each")
    func realOnes() async throws {
        try await ProxyFixture.run { fixture in
            let folder = "/" + String(repeating: "signed-", count: 20)
            let lines = (0..<14_400).map { "#EXTINF:6.0,\n\(folder)/segment-\($0).ts\n" }
            serve(fixture, "/day.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:6\n" + lines.joined())
            let answer = try await fixture.ask("/day.m3u8")
            #expect(answer.status == 200)
            #expect(answer.text.hasSuffix("segment-14399.ts\n"))
        }
    }

    @Test("While playlists are being read, everything else is answered")
    func othersDoNotWait() async throws {
        try await ProxyFixture.run { fixture in
            serve(fixture, "/a.m3u8", "#EXTM3U\n/1.ts\n")
            fixture.origin.serve("/film.mp4", .fresh(1000))
            // As two long playlists would.
            let gate = ThreadGate()
            let reading = (0..<2).map { _ in
                Task { await PlaylistRelay.threads.run { gate.wait() } }
            }
            async let playlist = fixture.ask("/a.m3u8")
            for _ in 0..<2 {
                let film = try await fixture.ask("/film.mp4")
                #expect(film.status == 200 && film.body.count == 1000)
            }
            gate.open()
            #expect(try await playlist.status == 200)
            for task in reading { await task.value }
        }
    }
}
