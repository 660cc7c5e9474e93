import SystemPackage
import Testing
import TieredCacheTesting

extension PlayerStage {
    /// Opens a page of the origin in a browser of its own, until the page asks for its own path
    /// with `-done?` behind it.
    ///
    /// - Parameters:
    ///   - html: the page.
    ///   - path: its path, of its own.
    ///   - fragment: what the page finds in `location.hash`.
    /// - Returns: what is behind the question mark.
    func browse(_ html: String, at path: String, _ fragment: String) async throws -> String {
        origin.serve(path, .text(html, contentType: "text/html"))
        let profile = try TemporaryDirectory("tieredcache-chromium")
        let arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio",
            "--disable-background-networking", "--autoplay-policy=no-user-gesture-required",
            "--user-data-dir=\(profile.path.string)", origin.url(path) + "#" + fragment,
        ]
        try await PlayerTool.chromium.running(arguments) {
            await origin.waitUntil { !$0.exchanges(for: "\(path)-done").isEmpty }
        }
        let report = try #require(origin.log.exchanges(for: "\(path)-done").first?.target)
        return String(report.dropFirst(path.count + "-done?".count))
    }
}
