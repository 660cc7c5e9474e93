import SystemPackage
import Testing
import TieredCache
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

    @Test("A video whose index is at its end plays, seeks and ends, and again without the origin")
    func plays() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("tail.mp4")
            try await play(stage, "/first.html")
            let fetched = stage.origin.log.bodyBytesWritten(for: "/tail.mp4")
            let size = try stage.size("tail.mp4")
            #expect(fetched <= size + 128 << 10)
            PlayerFigures.tell("chromium tail.mp4", fetched: fetched, needed: size)
            // It has left out what lies before the place that it went to; the rest is fetched here.
            let film = try CacheRequest(stage.origin.url("/tail.mp4"))
            _ = try await stage.cache.prefetch(film)
            // Held runs between two gaps that are shorter than a request is worth come again.
            #expect(stage.origin.log.bodyBytesWritten(for: "/tail.mp4") <= size * 13 / 10)
            let asked = stage.origin.log.exchanges(for: "/tail.mp4").count
            try await play(stage, "/second.html")
            #expect(stage.origin.log.exchanges(for: "/tail.mp4").count == asked)
        }
    }

    /// Plays in a browser of its own, from a page under a path of its own.
    private func play(_ stage: PlayerStage, _ page: String) async throws {
        let origin = stage.origin
        let text = Self.page.replacing("/report-", with: "\(page)-")
        origin.serve(page, .text(text, contentType: "text/html"))
        let profile = try TemporaryDirectory("tieredcache-chromium")
        let arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
            "--disable-background-networking", "--autoplay-policy=no-user-gesture-required",
            "--user-data-dir=\(profile.path.string)",
            origin.url(page) + "#" + (try stage.url("tail.mp4")),
        ]
        try await PlayerTool.chromium.running(arguments) {
            await origin.waitUntil { log in
                log.exchanges.contains { $0.path == "\(page)-ended" }
                    || log.exchanges.contains { $0.path == "\(page)-error" }
            }
        }
        let log = origin.log
        let reports = Set(log.exchanges.map(\.path))
        let wanted = ["playing", "seeked", "ended"].map { "\(page)-\($0)" }
        #expect(reports.isSuperset(of: wanted), "\(reports)")
        #expect(!reports.contains("\(page)-error"))
        guard let start = log.exchanges(for: page).first?.started else { return }
        for report in wanted {
            guard let told = log.exchanges(for: report).first?.started else { continue }
            PlayerFigures.tell("chromium", report, start.duration(to: told))
        }
    }
}
