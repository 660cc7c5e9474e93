import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

/// ffmpeg decodes through the proxy exactly what it decodes from the file.
///
/// It does not seek in HLS with fragments: FFmpeg 5.1 loses its place there, without a proxy too.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.ffmpeg.isInstalled
)
struct FFmpegTests {
    @Test(
        "Every frame is the same, each byte is fetched once, and again nothing is",
        arguments: ["fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4"]
    )
    func framesAreTheSame(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.serve(name)
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending(name).string
            )
            let start = SystemTimeSource().monotonicTime()
            #expect(try await MediaFiles.frames(of: stage.url(name)) == wanted)
            PlayerFigures.tell("ffmpeg \(name)", "all decoded", since: start)
            stage.expectEachByteOnce("ffmpeg \(name)")
            try await stage.withoutOrigin {
                let again = try await MediaFiles.frames(of: stage.url(name))
                #expect(again == wanted)
            }
        }
    }

    @Test(
        "A first frame, and one after a seek, are right, and hardly a byte is fetched twice",
        arguments: ["fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4", "aes.m3u8", "dash.mpd"]
    )
    func seeks(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(name)
            try await seek(name, on: stage)
            // How much further than it needs a player is sent depends on how fast it is sent.
            _ = try await MediaFiles.frames(of: stage.url(name))
            stage.expectEachByteOnce("ffmpeg \(name), seeks")
            try await stage.withoutOrigin { try await seek(name, " again", on: stage) }
        }
    }

    private func seek(_ name: String, _ round: String = "", on stage: PlayerStage) async throws {
        let file = stage.media.directory.appending(name).string
        let url = try stage.url(name)
        for place in ["0", "5", "3"] {
            let wanted = try await frame(at: place, of: file)
            let start = SystemTimeSource().monotonicTime()
            #expect(try await frame(at: place, of: url) == wanted)
            PlayerFigures.tell("ffmpeg \(name)", "at \(place) s\(round)", since: start)
        }
    }

    /// The checksum of the first frame from a place on, in seconds.
    private func frame(at place: String, of source: String) async throws -> String {
        let words = source.hasSuffix(".m3u8") ? ["-allowed_extensions", "ALL"] : []
        let outcome = try await PlayerTool.ffmpeg.run(
            ["-v", "error", "-ss", place] + words
                + ["-i", source, "-frames:v", "1", "-an"] + Self.checksums
        )
        #expect(outcome.hasSucceeded && outcome.text.contains("0, "), "\(outcome.error)")
        return outcome.text
    }

    @Test(
        "Encrypted segments and fragments come through the proxy, and again without the origin",
        arguments: ["aes.m3u8", "fmp4.m3u8", "dash.mpd"]
    )
    func presentations(_ playlist: String) async throws {
        try await PlayerStage.with { stage in
            try stage.servePresentation(playlist)
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending(playlist).string
            )
            #expect(try await MediaFiles.frames(of: stage.url(playlist)) == wanted)
            let log = stage.origin.log
            #expect(log.exchanges.count >= 4)
            #expect(log.exchanges.allSatisfy { $0.fields[.userAgent]?.contains("Lavf") != true })
            stage.expectEachByteOnce("ffmpeg \(playlist)")
            try await stage.withoutOrigin {
                let again = try await MediaFiles.frames(of: stage.url(playlist))
                #expect(again == wanted)
            }
        }
    }

    @Test("An origin that is slow, cuts and refuses changes no frame")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4", .troubled)
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending("tail.mp4").string
            )
            #expect(try await MediaFiles.frames(of: stage.url("tail.mp4")) == wanted)
            stage.expectLittleTwice("ffmpeg tail.mp4, troubled")
        }
    }

    @Test("An origin without ranges or length plays as well", arguments: [true, false])
    func poorOrigins(_ hasLength: Bool) async throws {
        try await PlayerStage.with { stage in
            try stage.serve("fast.mp4") { film in
                film.acceptsRanges = false
                film.framing = hasLength ? .contentLength : .chunked
            }
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending("fast.mp4").string
            )
            #expect(try await MediaFiles.frames(of: stage.url("fast.mp4")) == wanted)
        }
    }

    @Test("A look at a film of 1 GB over 20 Mbit/s whose index is at its end costs less than 4 MiB")
    func probing() async throws {
        try await PlayerStage.with { stage in
            let film = try LongFilm(stage.media.bytes("tail.mp4"), padding: 1 << 30)
            let resource = OriginResource(
                film.body,
                contentType: "video/mp4",
                fields: [.cacheControl: "max-age=3600"]
            )
            stage.origin.serve(
                "/long.mp4",
                resource,
                OriginScript(.throttled(bytesPerSecond: 2_500_000))
            )
            let url = try stage.url("long.mp4")
            try await look(at: url, "looked at")
            let fetched = stage.origin.log.bodyBytesWritten
            PlayerFigures.tell("ffprobe 1 GB", fetched: fetched, needed: resource.length)
            // It is sent a little more of the beginning before it leaves, since all comes at once.
            try await look(at: url, "looked at again")
            #expect(stage.origin.log.bodyBytesWritten < 4 << 20)
        }
    }

    private func look(at url: String, _ what: String) async throws {
        let start = SystemTimeSource().monotonicTime()
        let outcome = try await PlayerTool.ffprobe.run([
            "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", url,
        ])
        PlayerFigures.tell("ffprobe 1 GB", what, since: start)
        #expect(outcome.hasSucceeded, "\(outcome.error)")
        #expect(outcome.text.hasPrefix("6."))
    }

    @Test("A film that changes under a player never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            let directory = stage.media.directory
            let old = try await MediaFiles.frames(of: directory.appending("fast.mp4").string)
            let new = try await MediaFiles.frames(of: directory.appending("other.mp4").string)
            let outcome = try await stage.whileItChanges { url in
                try await PlayerTool.ffmpeg.run(["-v", "error", "-i", url] + Self.checksums)
            }
            let seen = outcome.text.split(separator: "\n").filter { $0.first != "#" }
            let whole = Set(old.split(separator: "\n").filter { $0.first != "#" })
            // The last packet may have come only in part; every other frame is the old film's.
            let strange = seen.filter { !whole.contains($0) }
            #expect(strange.count <= 2 && seen.count >= 1, "\(strange)")
            #expect(Set(strange).isDisjoint(with: new.split(separator: "\n")))
            // A player that starts now is a new reader.
            #expect(try await MediaFiles.frames(of: stage.url("fast.mp4")) == new)
        }
    }

    private static let checksums = ["-f", "framemd5", "-"]
}
