import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

/// `playbin` with `souphttpsrc` plays through the proxy to the end.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.gstreamer.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct GStreamerTests {
    @Test(
        "It plays to the end, and again without the origin",
        arguments: ["tail.mp4", "film.mkv", "dash.mpd"]
    )
    func plays(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            // Only the newer one knows DASH.
            let player = name.hasSuffix(".mpd") ? "playbin3" : "playbin"
            let play = [
                "-q", player, "uri=\(try stage.url(name))",
                "video-sink=fakesink sync=false", "audio-sink=fakesink sync=false",
            ]
            // It ends with the first frame; of the flags, the first is video.
            let look = [
                "-q", player, "uri=\(try stage.url(name))", "flags=1",
                "video-sink=fakesink sync=false num-buffers=1",
            ]
            let begin = SystemTimeSource().monotonicTime()
            #expect(try await PlayerTool.gstreamer.run(look).hasSucceeded)
            PlayerFigures.tell("gstreamer \(name)", "first frame", since: begin)
            let start = SystemTimeSource().monotonicTime()
            let first = try await PlayerTool.gstreamer.run(play)
            PlayerFigures.tell("gstreamer \(name)", "played", since: start)
            #expect(first.hasSucceeded && first.error.isEmpty, "\(first.error)")
            let log = stage.origin.log
            let sizes = try Set(log.exchanges.map(\.path)).map {
                try stage.size(String($0.dropFirst()))
            }
            let limit = sizes.reduce(0, +) + 128 << 10
            #expect(log.bodyBytesWritten <= limit && !log.exchanges.isEmpty)
            let asked = stage.origin.log.exchanges.count
            #expect(try await PlayerTool.gstreamer.run(play).hasSucceeded)
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }
}
