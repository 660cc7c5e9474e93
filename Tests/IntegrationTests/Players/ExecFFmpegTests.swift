import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

/// Stock ffmpeg by `tieredcache exec`, with the URL unchanged.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.ffmpeg.isInstalled
)
struct ExecFFmpegTests {
    @Test(
        "Every frame is the same, each byte is fetched once, and again nothing is",
        arguments: ["fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4", "aes.m3u8", "dash.mpd"]
    )
    func framesAreTheSame(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            let place = Workplace(origin: stage.origin, files: try TemporaryDirectory("exec"))
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending(name).string
            )
            #expect(try await frames(of: name, place) == wanted)
            stage.expectEachByteOnce("ffmpeg by exec, \(name)", isOfOtherProcess: true)
            // Not asked, and not there: nothing listens at its port any more.
            try await stage.withoutOrigin {
                await stage.origin.stop()
                let again = try await frames(of: name, place)
                #expect(again == wanted)
            }
        }
    }

    private func frames(of name: String, _ place: Workplace) async throws -> String {
        let words = name.hasSuffix(".m3u8") ? ["-allowed_extensions", "ALL"] : []
        let outcome = try await place.runPlain(
            ["exec", "--directory", place.cache.string, "--", "ffmpeg", "-v", "error"] + words
                + ["-i", place.origin.url("/\(name)"), "-f", "framemd5", "-"]
        )
        outcome.expectDone()
        return outcome.text
    }
}
