import SystemPackage
import Testing
import TieredCacheTesting

/// mpv, driven over its IPC socket, plays and seeks through the proxy.
///
/// Not in HLS with fragments: FFmpeg 5.1 loses its place there when it seeks, without a proxy too.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.mpv.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct MpvTests {
    @Test("It seeks there and back and plays to the end", arguments: ["tail.mp4", "aes.m3u8"])
    func seeks(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation("aes.m3u8")
            try stage.serve("tail.mp4")
            let url = try stage.url(name)
            try await play(url)
            let asked = stage.origin.log.exchanges.count
            #expect(asked > 0)
            try await play(url)
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }

    private func play(_ url: String) async throws {
        let directory = try TemporaryDirectory("tieredcache-mpv")
        let socket = directory.appending("ipc").string
        let arguments = [
            "--no-config", "--vo=null", "--ao=null", "--no-terminal", "--pause", "--keep-open=no",
            "--input-ipc-server=\(socket)", "--idle=once", "--force-window=no",
        ]
        try await PlayerTool.mpv.running(arguments) {
            let mpv = try await MpvConnection.open(socket)
            defer { mpv.close() }
            try await mpv.send(#"{"command":["loadfile","\#(url)"]}"#)
            try await mpv.waitFor(#""event":"file-loaded""#)
            for place in [5, 1, 3] {
                try await mpv.send(#"{"command":["seek",\#(place),"absolute+exact"]}"#)
                try await mpv.waitFor(#""event":"playback-restart""#)
            }
            try await mpv.send(#"{"command":["set_property","speed",8]}"#)
            try await mpv.send(#"{"command":["set_property","pause",false]}"#)
            let end = try await mpv.waitFor(#""event":"end-file""#)
            #expect(end.contains(#""reason":"eof""#), "\(end)")
        }
    }
}
