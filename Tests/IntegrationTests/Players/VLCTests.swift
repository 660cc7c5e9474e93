import Testing
import TieredCache
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// VLC plays through the proxy to the end. It refuses to be root, so it runs as nobody there.
@Suite(
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
            let start = SystemTimeSource().monotonicTime()
            let first = try await play(stage.url("tail.mp4"))
            PlayerFigures.tell("vlc tail.mp4", "played eight times as fast", since: start)
            #expect(first.contains("EOF reached") || first.contains("end of playlist"), "\(first)")
            #expect(stage.origin.log.exchanges.allSatisfy { ($0.status ?? 500) < 300 })
            let size = try stage.size("tail.mp4")
            #expect(stage.origin.log.bodyBytesWritten >= size)
            #expect(stage.origin.log.bodyBytesWritten <= size + 128 << 10)
            let asked = stage.origin.log.exchanges.count
            _ = try await play(stage.url("tail.mp4"))
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }

    @Test("It begins in the middle, and what is before that is fetched when it is played")
    func seeks() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4")
            let start = SystemTimeSource().monotonicTime()
            let words = ["--start-time", "5"]
            let first = try await play(stage.url("tail.mp4"), words)
            PlayerFigures.tell("vlc tail.mp4", "played from 5 s on", since: start)
            #expect(first.contains("EOF reached") || first.contains("end of playlist"), "\(first)")
            let again = SystemTimeSource().monotonicTime()
            _ = try await play(stage.url("tail.mp4"), words)
            PlayerFigures.tell("vlc tail.mp4", "played from 5 s on, again", since: again)
            // What it had no use for comes when it is played, and no byte comes twice.
            _ = try await play(stage.url("tail.mp4"))
            let limit = try stage.size("tail.mp4") + 128 << 10
            #expect(stage.origin.log.bodyBytesWritten <= limit)
        }
    }

    /// What VLC says about playing a URL, eight times as fast as it should.
    private func play(_ url: String, _ words: [String] = []) async throws -> String {
        let vlc =
            [
                "cvlc", "-vv", "--no-color", "--vout=vdummy", "--aout=adummy", "--play-and-exit",
                "--rate", "8",
            ] + words + [url, "vlc://quit"]
        guard getuid() == 0 else {
            return try await PlayerTool.vlc.run(Array(vlc.dropFirst())).error
        }
        return try await PlayerTool.runuser.run(["-u", "nobody", "--", "env", "HOME=/tmp"] + vlc)
            .error
    }
}
