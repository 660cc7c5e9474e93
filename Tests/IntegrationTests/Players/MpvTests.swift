import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// mpv, driven over its IPC socket, plays and seeks through the proxy, and shows what it shows of
/// the file.
///
/// It does not seek in HLS with fragments: FFmpeg 5.1 loses its place there, without a proxy too.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.mpv.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct MpvTests {
    /// What it shows at each place of a film that it plays itself; the same in every form of it.
    private static let shown = Task {
        try await play(MediaFiles.shared.directory.appending("tail.mp4").string, "mpv, the file")
    }

    @Test(
        "It seeks there and back and plays to the end, all as from the file, each byte once",
        arguments: ["fast.mp4", "tail.mp4", "film.mkv", "aes.m3u8", "dash.mpd", "scattered.mp4"]
    )
    func seeks(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            let url = try stage.url(name)
            let wanted = try await Self.shown.value
            #expect(try await Self.play(url, "mpv \(name)") == wanted)
            #expect(try await pictures(url) == stage.media.pictures)
            // How much further than it needs a player is sent depends on how fast it is sent.
            _ = try await MediaFiles.frames(of: url)
            stage.expectEachByteOnce("mpv \(name)")
            try await stage.withoutOrigin {
                let again = try await Self.play(url, "mpv \(name), again")
                #expect(again == wanted)
            }
        }
    }

    @Test("It plays fragments to the end, each byte once, and again without the origin")
    func fragments() async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation("fmp4.m3u8")
            let url = try stage.url("fmp4.m3u8")
            let wanted = stage.media.pictures
            let start = SystemTimeSource().monotonicTime()
            #expect(try await pictures(url) == wanted)
            PlayerFigures.tell("mpv fmp4.m3u8", "all decoded", since: start)
            stage.expectEachByteOnce("mpv fmp4.m3u8")
            try await stage.withoutOrigin {
                let again = try await pictures(url)
                #expect(again == wanted)
            }
        }
    }

    /// Plays a film over IPC: what is shown at three places, by its digest.
    private static func play(_ url: String, _ name: String) async throws -> [Int] {
        let directory = try TemporaryDirectory("tieredcache-mpv")
        let socket = directory.appending("ipc").string
        // It says on its output when it listens.
        let arguments = [
            "--no-config", "--vo=null", "--ao=null", "--no-input-terminal", "--pause",
            "--keep-open=no", "--msg-level=all=no,ipc=v", "--input-ipc-server=\(socket)",
            "--idle=once", "--force-window=no", "--screenshot-png-compression=1",
        ]
        try await PlayerTool.mpv.running(arguments, onceItSays: "Listening") {
            let mpv = try MpvConnection.open(socket)
            defer { mpv.close() }
            try await play(url, name, with: mpv, in: directory)
        }
        return try places.map { digest(try directory.bytes("\($0).png")) }
    }

    private static let places = [5, 1, 3]

    private static func play(
        _ url: String,
        _ name: String,
        with mpv: MpvConnection,
        in directory: TemporaryDirectory
    ) async throws {
        let time = SystemTimeSource()
        let start = time.monotonicTime()
        try await mpv.send(#"{"command":["loadfile","\#(url)"]}"#)
        try await mpv.waitFor(#""event":"file-loaded""#)
        // It has the first picture then.
        try await mpv.waitFor(#""event":"playback-restart""#)
        PlayerFigures.tell(name, "first picture", since: start)
        for place in places {
            let start = time.monotonicTime()
            try await mpv.send(#"{"command":["seek",\#(place),"absolute+exact"]}"#)
            try await mpv.waitFor(#""event":"seek""#)
            try await mpv.waitFor(#""event":"playback-restart""#)
            PlayerFigures.tell(name, "seek to \(place) s", since: start)
            let picture = directory.appending("\(place).png").string
            try await mpv.send(
                #"{"command":["screenshot-to-file","\#(picture)","video"],"request_id":\#(place)}"#
            )
            try await mpv.waitFor(#""request_id":\#(place)"#)
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
            let url = try stage.url("tail.mp4")
            #expect(try await Self.play(url, "mpv tail.mp4, stalled") == Self.shown.value)
            gate.open()
            opening.cancel()
            stage.expectEachByteOnce("mpv tail.mp4, stalled")
        }
    }

    @Test("An origin that is slow, cuts, stalls and refuses changes no picture")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            #expect(try await pictures(stage.url("tail.mp4")) == stage.media.pictures)
            stage.expectLittleTwice("mpv tail.mp4, troubled")
        }
    }

    @Test("A film that changes under it never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            try await stage.expectNoMixture { try await pictures($0, mayFail: true) }
        }
    }

    /// All pictures that it decodes of a film.
    ///
    /// Without the sound: while it waits for that, it leaves out pictures.
    private func pictures(_ url: String, mayFail: Bool = false) async throws -> Pictures {
        let directory = try TemporaryDirectory("tieredcache-mpv")
        let outcome = try await PlayerTool.mpv.run([
            "--no-config", "--msg-level=all=error",
            "--o=\(directory.appending("pictures").string)", "--of=rawvideo", "--ovc=rawvideo",
            "--no-audio", url,
        ])
        #expect(outcome.hasSucceeded || mayFail, "\(outcome.text) \(outcome.error)")
        return try Pictures("pictures", in: directory)
    }
}
