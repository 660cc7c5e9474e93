import SystemPackage
import Testing
import TieredCache
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
    @Test(
        "It seeks there and back and plays to the end",
        arguments: ["tail.mp4", "aes.m3u8", "dash.mpd", "scattered.mp4"]
    )
    func seeks(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation("aes.m3u8")
            try stage.servePresentation("dash.mpd")
            try stage.serve("tail.mp4")
            try stage.serve("scattered.mp4")
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
        // It says on its output when it listens.
        let arguments = [
            "--no-config", "--vo=null", "--ao=null", "--no-input-terminal", "--pause",
            "--keep-open=no", "--msg-level=all=no,ipc=v", "--input-ipc-server=\(socket)",
            "--idle=once", "--force-window=no",
        ]
        try await PlayerTool.mpv.running(arguments, onceItSays: "Listening") {
            let mpv = try MpvConnection.open(socket)
            defer { mpv.close() }
            try await play(url, with: mpv)
        }
    }

    private func play(_ url: String, with mpv: MpvConnection) async throws {
        let name = "mpv " + url.suffix(8)
        let time = SystemTimeSource()
        let start = time.monotonicTime()
        try await mpv.send(#"{"command":["loadfile","\#(url)"]}"#)
        try await mpv.waitFor(#""event":"file-loaded""#)
        PlayerFigures.tell(name, "loaded", since: start)
        for place in [5, 1, 3] {
            let start = time.monotonicTime()
            try await mpv.send(#"{"command":["seek",\#(place),"absolute+exact"]}"#)
            try await mpv.waitFor(#""event":"playback-restart""#)
            PlayerFigures.tell(name, "seek to \(place) s", since: start)
        }
        try await mpv.send(#"{"command":["set_property","speed",8]}"#)
        try await mpv.send(#"{"command":["set_property","pause",false]}"#)
        let end = try await mpv.waitFor(#""event":"end-file""#)
        #expect(end.contains(#""reason":"eof""#), "\(end)")
    }

    @Test("It waits where the origin stalls, and plays on to the end")
    func stalls() async throws {
        try await PlayerStage.with { stage in
            let gate = OriginGate()
            let script = OriginScript.first(1, .faithful).then(1, .wait(for: gate, after: 20_000))
            try stage.serve("tail.mp4", script)
            let origin = stage.origin
            let opening = Task {
                // The player waits by then: the second request is its own.
                await origin.waitUntil { log in
                    log.exchanges.contains { $0.number >= 1 && $0.bodyBytesWritten >= 20_000 }
                }
                gate.open()
            }
            try await play(try stage.url("tail.mp4"))
            gate.open()
            opening.cancel()
            let limit = try stage.size("tail.mp4") + 128 << 10
            #expect(stage.origin.log.bodyBytesWritten <= limit)
        }
    }
}
