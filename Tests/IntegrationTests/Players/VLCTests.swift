import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// VLC plays and seeks through the proxy, and shows what ffmpeg shows.
///
/// It refuses to be root, so it runs as `nobody` there. It never shows the last picture of a
/// transport stream, without a proxy neither.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.vlc.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct VLCTests {
    @Test("It plays to the end, and again without the origin")
    func plays() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4")
            let words = ["--vout=vdummy", "--aout=adummy", "--rate", "8"]
            let start = SystemTimeSource().monotonicTime()
            let first = try await play(stage.url("tail.mp4"), words)
            PlayerFigures.tell("vlc tail.mp4", "played eight times as fast", since: start)
            #expect(first.contains("EOF reached") || first.contains("end of playlist"), "\(first)")
            #expect(stage.origin.log.exchanges.allSatisfy { ($0.status ?? 500) < 300 })
            #expect(stage.origin.log.bodyBytesWritten >= (try stage.size("tail.mp4")))
            stage.expectEachByteOnce("vlc tail.mp4, played")
            try await stage.withoutOrigin {
                let again = SystemTimeSource().monotonicTime()
                _ = try await play(stage.url("tail.mp4"), words)
                PlayerFigures.tell("vlc tail.mp4", "played again", since: again)
            }
        }
    }

    @Test(
        "It seeks and plays every picture, fetching each byte once, and again without the origin",
        arguments: [
            "fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4", "aes.m3u8", "fmp4.m3u8",
            "dash.mpd",
        ]
    )
    func shows(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            let url = try stage.url(name)
            let count = name == "aes.m3u8" ? 149 : 150
            let wanted = stage.media.pictures.first(count)
            let start = SystemTimeSource().monotonicTime()
            let opening = try await pictures(url, ["--stop-time", "0.04"])
            PlayerFigures.tell("vlc \(name)", "first pictures", since: start)
            #expect(opening.count > 0 && opening.digests == Array(wanted.prefix(opening.count)))
            try await seek(url, "vlc \(name)", "played from 5 s on", wanted)
            let seen = try await pictures(url)
            #expect(seen.digests == wanted)
            stage.expectEachByteOnce("vlc \(name)")
            try await stage.withoutOrigin {
                try await seek(url, "vlc \(name)", "played from 5 s on, again", wanted)
                let again = try await pictures(url)
                #expect(again.digests == wanted)
            }
        }
    }

    /// Goes to 5 s and plays from there: the last of six seconds.
    private func seek(_ url: String, _ name: String, _ what: String, _ wanted: [Int]) async throws {
        let start = SystemTimeSource().monotonicTime()
        let seen = try await pictures(url, ["--start-time", "5"])
        PlayerFigures.tell(name, what, since: start)
        #expect(seen.last(24) == wanted.suffix(24))
        // It begins a little before, in playlists with the key frame.
        #expect(seen.count <= 50)
    }

    @Test("An origin that is slow, cuts, stalls and refuses changes no picture")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            #expect(try await pictures(stage.url("tail.mp4")) == stage.media.pictures)
            stage.expectLittleTwice("vlc tail.mp4, troubled")
        }
    }

    @Test("A film that changes under it never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            try await stage.expectNoMixture { try await pictures($0) }
        }
    }

    /// What VLC decodes of a film, to the end; written down, and so as fast as it comes.
    private func pictures(_ url: String, _ words: [String] = []) async throws -> Pictures {
        let directory = try TemporaryDirectory("tieredcache-vlc")
        try #require(chmod(directory.path.string, 0o777) == 0)
        let file = directory.appending("pictures").string
        let sound = directory.appending("sound").string
        _ = try await play(url, PlayerTool.writing(pictures: file, sound: sound) + words)
        return try Pictures("pictures", in: directory)
    }

    /// What VLC says about playing a URL.
    private func play(_ url: String, _ words: [String]) async throws -> String {
        try await PlayerTool.playInVLC(["-vv", "--no-color"] + words + [url]).error
    }
}
