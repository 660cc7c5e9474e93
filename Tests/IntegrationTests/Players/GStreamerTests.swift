import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// `playbin` with `souphttpsrc` plays and seeks through the proxy, and shows what ffmpeg shows.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.gstreamer.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct GStreamerTests {
    @Test(
        "It seeks and plays every picture, fetching each byte once, and again without the origin",
        arguments: [
            "fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4", "aes.m3u8", "fmp4.m3u8",
            "dash.mpd",
        ]
    )
    func plays(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            let url = try stage.url(name)
            let start = SystemTimeSource().monotonicTime()
            // It ends with the first picture; of the flags, the first is video.
            try await play(url, sink: "fakesink sync=false num-buffers=1", ["--flags=1"])
            PlayerFigures.tell("gstreamer \(name)", "first picture", since: start)
            let wanted = stage.media.pictures
            try await seek(name, "played from 5 s on", on: stage)
            #expect(try await pictures(url) == wanted)
            stage.expectEachByteOnce("gstreamer \(name)")
            try await stage.withoutOrigin {
                try await seek(name, "played from 5 s on, again", on: stage)
                #expect(try await pictures(url) == wanted)
            }
        }
    }

    /// Goes to 5 s and plays from there: the last of six seconds.
    private func seek(_ name: String, _ what: String, on stage: PlayerStage) async throws {
        let start = SystemTimeSource().monotonicTime()
        let seen = try await pictures(stage.url(name), ["--start-position=5"])
        PlayerFigures.tell("gstreamer \(name)", what, since: start)
        #expect(seen.last(25) == stage.media.pictures.last(25))
        // Some demuxers begin with the key frame before.
        #expect(seen.count <= 50)
    }

    @Test("An origin that is slow, cuts, stalls and refuses changes no picture")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            #expect(try await pictures(stage.url("tail.mp4")) == stage.media.pictures)
            stage.expectLittleTwice("gstreamer tail.mp4, troubled")
        }
    }

    @Test("A film that changes under it never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            try await stage.expectNoMixture { try await pictures($0, mayFail: true) }
        }
    }

    /// What it shows of a film, to the end.
    private func pictures(
        _ url: String,
        _ words: [String] = [],
        mayFail: Bool = false
    ) async throws -> Pictures {
        let directory = try TemporaryDirectory("tieredcache-gstreamer")
        let file = directory.appending("pictures").string
        let sink = "filesink location=\(file) sync=false"
        try await play(url, sink: sink, words, mayFail: mayFail)
        return try Pictures("pictures", in: directory)
    }

    private func play(
        _ url: String,
        sink: String,
        _ words: [String],
        mayFail: Bool = false
    ) async throws {
        // The demuxers of the older one cannot do all that those of the newer one can.
        let isPlaylist = url.hasSuffix(".m3u8") || url.hasSuffix(".mpd")
        let outcome = try await PlayerTool.gstreamer.run(
            ["-q", "--no-interactive", "--videosink=\(sink)", "--audiosink=fakesink sync=false"]
                + (isPlaylist ? ["--use-playbin3"] : []) + words + [url]
        )
        let hasSucceeded = outcome.hasSucceeded && outcome.error.isEmpty
        #expect(hasSucceeded || mayFail, "\(outcome.error)")
    }
}
