import SystemPackage
import Testing
import TieredCacheTesting

/// Films made by ffmpeg, once for all tests: six seconds with sound, noisy enough to be large.
struct MediaFiles: Sendable {
    private static let made = Task { try await make() }

    /// The films; made by the first test that asks.
    static var shared: MediaFiles {
        get async throws { try await made.value }
    }

    let directory: TemporaryDirectory
    /// What one sees in any of the films but `other.mp4`.
    let pictures: Pictures

    func bytes(_ name: String) throws -> [UInt8] {
        try directory.bytes(name)
    }

    /// The frames of a file, each with its checksum, as ffmpeg decodes them.
    static func frames(of url: String) async throws -> String {
        let outcome = try await PlayerTool.ffmpeg.run(
            [
                "-v", "error", "-allowed_extensions", "ALL", "-i", url, "-f", "framemd5", "-",
            ].filter { url.hasSuffix(".m3u8") || ($0 != "-allowed_extensions" && $0 != "ALL") }
        )
        #expect(outcome.hasSucceeded, "\(outcome.error)")
        #expect(outcome.error.isEmpty, "\(outcome.error)")
        return outcome.text
    }

    /// The pictures of a film of a directory, as ffmpeg decodes them.
    static func pictures(
        of name: String,
        in directory: TemporaryDirectory
    ) async throws -> Pictures {
        let outcome = try await PlayerTool.ffmpeg.run(
            ["-v", "error", "-i", name, "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"],
            in: directory.path
        )
        try #require(outcome.hasSucceeded, "\(outcome.error)")
        return Pictures(outcome.output)
    }

    private static func make() async throws -> MediaFiles {
        let directory = try TemporaryDirectory("tieredcache-media")
        func ffmpeg(_ arguments: String...) async throws {
            let outcome = try await PlayerTool.ffmpeg.run(
                ["-v", "error", "-y"] + arguments,
                in: directory.path
            )
            try #require(outcome.hasSucceeded, "\(outcome.error)")
        }
        try await ffmpeg(
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=320x180:rate=25:duration=6",
            "-f",
            "lavfi",
            "-i",
            "sine=frequency=440:duration=6",
            "-vf",
            "noise=alls=40:allf=t",
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-g",
            "50",
            "-b:v",
            "3M",
            "-pix_fmt",
            "yuv420p",
            "-c:a",
            "aac",
            "tail.mp4"
        )
        try await ffmpeg("-i", "tail.mp4", "-c", "copy", "-movflags", "+faststart", "fast.mp4")
        try await ffmpeg("-i", "tail.mp4", "-c", "copy", "film.mkv")
        try directory.write("0123456789abcdef", to: "film.key")
        try directory.write("film.key\nfilm.key\n", to: "keys")
        try await ffmpeg(
            "-i",
            "tail.mp4",
            "-c",
            "copy",
            "-f",
            "hls",
            "-hls_time",
            "2",
            "-hls_playlist_type",
            "vod",
            "-hls_key_info_file",
            "keys",
            "-hls_segment_filename",
            "ts%d.ts",
            "aes.m3u8"
        )
        try await ffmpeg(
            "-i",
            "tail.mp4",
            "-c",
            "copy",
            "-f",
            "hls",
            "-hls_time",
            "2",
            "-hls_playlist_type",
            "vod",
            "-hls_segment_type",
            "fmp4",
            "-hls_fmp4_init_filename",
            "init.mp4",
            "-hls_segment_filename",
            "fm%d.m4s",
            "fmp4.m3u8"
        )
        try await ffmpeg(
            "-i",
            "tail.mp4",
            "-c",
            "copy",
            "-f",
            "dash",
            "-seg_duration",
            "2",
            "-adaptation_sets",
            "id=0,streams=v id=1,streams=a",
            "-init_seg_name",
            "dash$RepresentationID$.mp4",
            "-media_seg_name",
            "dash$RepresentationID$-$Number$.m4s",
            "dash.mpd"
        )
        try await ffmpeg(
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=320x180:rate=25:duration=6",
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-g",
            "50",
            "-b:v",
            "3M",
            "-pix_fmt",
            "yuv420p",
            "-vf",
            "noise=alls=40:allf=t",
            "-movflags",
            "+faststart",
            "other.mp4"
        )
        let scattered = try ScatteredFilm(try directory.bytes("tail.mp4"))
        try directory.write(scattered.bytes, to: "scattered.mp4")
        let pictures = try await pictures(of: "tail.mp4", in: directory)
        try #require(pictures.count == 150)
        return MediaFiles(directory: directory, pictures: pictures)
    }
}
