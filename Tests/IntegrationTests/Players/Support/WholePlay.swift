import Testing
import TieredCacheTesting

/// A player that plays a film to its end, as fast as it can.
enum WholePlay: String, CaseIterable, Sendable {
    case mpv
    case vlc
    case gstreamer
    case chromium
    case ffmpeg

    private static let page = """
        <!doctype html><video id=video muted crossorigin=anonymous></video><script>
        const video = document.getElementById('video')
        const tell = what => fetch(location.pathname + '-done?' + what)
        video.addEventListener('ended', () => tell('ended'))
        video.addEventListener('error', () => tell('error'))
        video.src = location.hash.slice(1)
        video.playbackRate = 16
        video.play()
        </script>
        """

    private var tool: PlayerTool {
        switch self {
        case .mpv: .mpv
        case .vlc: .vlc
        case .gstreamer: .gstreamer
        case .chromium: .chromium
        case .ffmpeg: .ffmpeg
        }
    }

    var isInstalled: Bool { tool.path != nil }

    /// - Returns: whether it has played all of it, GStreamer within twenty seconds.
    func play(_ url: String, on stage: PlayerStage) async throws -> Bool {
        switch self {
        case .chromium: try await browse(url, on: stage) == "ended"
        case .vlc: try await PlayerTool.playInVLC(arguments(url)).hasSucceeded
        case .gstreamer:
            // GStreamer 1.22 now and then waits for ever, alone, too.
            try await PlayerTool.timeout.run(["20", tool.rawValue] + arguments(url)).hasSucceeded
        default: try await tool.run(arguments(url)).hasSucceeded
        }
    }

    private func browse(_ url: String, on stage: PlayerStage) async throws -> String {
        let page = "/whole-\(stage.origin.log.exchanges.count).html"
        return try await stage.browse(Self.page, at: page, url)
    }

    private func arguments(_ url: String) -> [String] {
        switch self {
        case .mpv:
            [
                "--no-config", "--msg-level=all=error", "--vo=null", "--ao=null", "--untimed",
                "--ao-null-untimed", url,
            ]
        case .vlc: PlayerTool.writing(pictures: "/dev/null", sound: "/dev/null") + [url]
        case .gstreamer:
            // As it is without the option, and 0x80, download: what lies between picture and sound
            // goes to a file.
            [
                "-q", "--no-interactive", "--flags=1687", "--videosink=fakesink sync=false",
                "--audiosink=fakesink sync=false", url,
            ]
        case .chromium: []
        case .ffmpeg: ["-nostdin", "-v", "error", "-i", url, "-f", "null", "-"]
        }
    }
}
