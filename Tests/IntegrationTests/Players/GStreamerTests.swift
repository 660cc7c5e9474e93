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
    @Test("It plays to the end, and again without the origin", arguments: ["tail.mp4", "film.mkv"])
    func plays(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.serve(name)
            let play = [
                "-q", "playbin", "uri=\(try stage.url(name))",
                "video-sink=fakesink sync=false", "audio-sink=fakesink sync=false",
            ]
            let start = SystemTimeSource().monotonicTime()
            let first = try await PlayerTool.gstreamer.run(play)
            PlayerFigures.tell("gstreamer \(name)", "played", since: start)
            #expect(first.hasSucceeded && first.error.isEmpty, "\(first.error)")
            let limit = try stage.size(name) + 128 << 10
            #expect(stage.origin.log.bodyBytesWritten <= limit)
            let asked = stage.origin.log.exchanges.count
            #expect(try await PlayerTool.gstreamer.run(play).hasSucceeded)
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }
}
