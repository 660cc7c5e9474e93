import HTTPTypes
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

/// ffmpeg decodes through the proxy exactly what it decodes from the file.
@Suite(.serialized, .timeLimit(.minutes(10)), PlayerTool.ffmpeg.isInstalled)
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
            let fetched = stage.origin.log.bodyBytesWritten
            let limit = try stage.size(name) + 128 << 10
            #expect(fetched <= limit)
            PlayerFigures.tell("ffmpeg \(name)", "all decoded", since: start)
            PlayerFigures.tell("ffmpeg \(name)", fetched: fetched, needed: try stage.size(name))
            let asked = stage.origin.log.exchanges.count
            #expect(try await MediaFiles.frames(of: stage.url(name)) == wanted)
            #expect(stage.origin.log.exchanges.count == asked)
        }
    }

    @Test(
        "A first frame, and one after a seek, are right, and hardly a byte is fetched twice",
        arguments: ["fast.mp4", "tail.mp4", "film.mkv", "scattered.mp4"]
    )
    func seeks(_ name: String) async throws {
        try await PlayerStage.with { stage in
            try stage.serve(name)
            let file = stage.media.directory.appending(name).string
            let url = try stage.url(name)
            for round in ["", " again"] {
                for place in ["0", "5", "3"] {
                    let wanted = try await frame(at: place, of: file)
                    let start = SystemTimeSource().monotonicTime()
                    #expect(try await frame(at: place, of: url) == wanted)
                    PlayerFigures.tell("ffmpeg \(name)", "at \(place) s\(round)", since: start)
                }
            }
            let limit = try stage.size(name) + 128 << 10
            #expect(stage.origin.log.bodyBytesWritten <= limit)
        }
    }

    /// The checksum of the first frame from a place on, in seconds.
    private func frame(at place: String, of source: String) async throws -> String {
        let outcome = try await PlayerTool.ffmpeg.run(
            ["-v", "error", "-ss", place, "-i", source, "-frames:v", "1", "-an"] + Self.checksums
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
            #expect(try await MediaFiles.frames(of: stage.url(playlist)) == wanted)
            #expect(stage.origin.log.exchanges.count == log.exchanges.count)
        }
    }

    @Test("An origin that is slow, cuts and refuses changes no frame")
    func troubledOrigins() async throws {
        try await PlayerStage.with { stage in
            let script = OriginScript.first(1, .cut(after: 100_000))
                .then(1, .status(503, retryAfter: "1"))
                .then(1, .cut(after: 150_000, .finish))
                .then(1, .dropped())
                .then(1, .stalling(after: 60_000, for: .milliseconds(700)))
                .then(.throttled(bytesPerSecond: 4 << 20))
            try stage.serve("tail.mp4", script)
            let wanted = try await MediaFiles.frames(
                of: stage.media.directory.appending("tail.mp4").string
            )
            #expect(try await MediaFiles.frames(of: stage.url("tail.mp4")) == wanted)
            let limit = try stage.size("tail.mp4") * 12 / 10
            #expect(stage.origin.log.bodyBytesWritten <= limit)
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
            let resource = OriginResource(film.body, contentType: "video/mp4")
            stage.origin.serve(
                "/long.mp4",
                resource,
                OriginScript(.throttled(bytesPerSecond: 2_500_000))
            )
            let start = SystemTimeSource().monotonicTime()
            let outcome = try await PlayerTool.ffprobe.run([
                "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0",
                try stage.url("long.mp4"),
            ])
            PlayerFigures.tell("ffprobe 1 GB", "looked at", since: start)
            #expect(outcome.hasSucceeded, "\(outcome.error)")
            #expect(outcome.text.hasPrefix("6."))
            let fetched = stage.origin.log.bodyBytesWritten
            #expect(fetched < 4 << 20)
            PlayerFigures.tell("ffprobe 1 GB", fetched: fetched, needed: resource.length)
        }
    }

    @Test("A film that changes under a player never mixes with the next one")
    func changes() async throws {
        try await PlayerStage.with { stage in
            // Asked at each start whether it is current.
            try stage.serve("fast.mp4", OriginScript(.throttled(bytesPerSecond: 1 << 20))) {
                $0.fields[.cacheControl] = "no-cache"
            }
            let directory = stage.media.directory
            let old = try await MediaFiles.frames(of: directory.appending("fast.mp4").string)
            let new = try await MediaFiles.frames(of: directory.appending("other.mp4").string)
            let url = try stage.url("fast.mp4")
            async let playing = PlayerTool.ffmpeg.run(["-v", "error", "-i", url] + Self.checksums)
            await stage.origin.waitUntil { $0.bodyBytesWritten(for: "/fast.mp4") > 300_000 }
            let other = try stage.media.bytes("other.mp4")
            stage.origin.update("/fast.mp4") { film in
                film.body = .bytes(other)
                film.version += 1
            }
            let seen = try await playing.text.split(separator: "\n").filter { $0.first != "#" }
            let whole = Set(old.split(separator: "\n").filter { $0.first != "#" })
            // The last packet may have come only in part; every other frame is the old film's.
            let strange = seen.filter { !whole.contains($0) }
            #expect(strange.count <= 2 && seen.count >= 1, "\(strange)")
            #expect(Set(strange).isDisjoint(with: new.split(separator: "\n")))
            // A player that starts now is a new reader.
            #expect(try await MediaFiles.frames(of: url) == new)
        }
    }

    private static let checksums = ["-f", "framemd5", "-"]
}

extension OriginBehaviour {
    /// Says nothing for a while when so many body bytes of the response are out.
    fileprivate static func stalling(after bytes: Int64, for time: Duration) -> OriginBehaviour {
        faithful.with { $0.interruptions = [(bytes, .pause(time))] }
    }
}
