import SystemPackage
import Testing
import TieredCacheTesting

/// A `<video>` in a real browser plays and seeks through the proxy.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.chromium.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct ChromiumTests {
    private static let page = """
        <!doctype html><video id=v muted></video><script>
        const say = what => fetch('/report-' + what)
        const video = document.getElementById('v')
        for (const name of ['playing', 'seeked', 'ended', 'error'])
            video.addEventListener(name, () => say(name))
        video.addEventListener('canplay', () => { video.currentTime = 4; video.play() }, {once: true})
        video.src = decodeURIComponent(location.hash.slice(1))
        </script>
        """

    @Test("A video whose index is at its end plays, seeks and ends")
    func plays() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4")
            stage.origin.serve("/page.html", .text(Self.page, contentType: "text/html"))
            let profile = try TemporaryDirectory("tieredcache-chromium")
            let origin = stage.origin
            let arguments = [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
                "--disable-background-networking",
                "--autoplay-policy=no-user-gesture-required",
                "--user-data-dir=\(profile.path.string)",
                origin.url("/page.html") + "#" + (try stage.url("tail.mp4")),
            ]
            try await PlayerTool.chromium.running(arguments) {
                await origin.waitUntil { log in
                    log.exchanges.contains { $0.path == "/report-ended" }
                        || log.exchanges.contains { $0.path == "/report-error" }
                }
            }
            let reports = Set(origin.log.exchanges.map(\.path))
            #expect(reports.isSuperset(of: ["/report-playing", "/report-seeked", "/report-ended"]))
            #expect(!reports.contains("/report-error"))
            let fetched = origin.log.bodyBytesWritten(for: "/tail.mp4")
            let limit = try stage.size("tail.mp4") + 128 << 10
            #expect(fetched <= limit)
        }
    }
}
