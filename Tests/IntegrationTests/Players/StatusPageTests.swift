import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// The page at the proxy's base, in a real browser, with its buttons pressed.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.chromium.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct StatusPageTests {
    private static func row(_ name: String) -> String {
        "[...document.querySelectorAll('tbody tr')].find(r => r.innerText.includes('\(name)'))"
    }

    @Test("What is cached is shown, is pinned, unpinned and removed by its buttons")
    func buttons() async throws {
        try await PlayerStage.with { stage in
            stage.origin.serve("/a.bin", .generated(length: 100_000, cacheControl: "max-age=60"))
            let film = try CacheRequest(stage.origin.url("/a.bin"))
            _ = try await stage.cache.data(for: film)
            _ = try await stage.cache.data(for: film)
            try await DevTools.with(stage.base) { page in
                let row = Self.row("/a.bin")
                try await page.waitUntil(row)
                #expect(try await page.evaluate("\(row).cells[1].innerText") == "200")
                let bar = "\(row).querySelector('progress')"
                #expect(try await page.evaluate("\(bar).value / \(bar).max") == "1")
                let figures = try await page.evaluate("document.querySelector('dl').innerText")
                #expect(figures.contains("Hit ratio\n50 %"), "\(figures)")
                #expect(figures.contains("Byte hit ratio\n50 %"), "\(figures)")
                try await page.press("pin", until: "\(row)?.innerText.includes('pinned')")
                let pinned = try await stage.cache.entry(for: film)
                #expect(pinned?.isPinned == true)
                try await page.press(
                    "unpin",
                    until: "\(row) && !\(row).innerText.includes('pinned')"
                )
                let unpinned = try await stage.cache.entry(for: film)
                #expect(unpinned?.isPinned == false)
                try await page.press(
                    "remove",
                    until: "document.body?.innerText.includes('Nothing is cached')"
                )
                let removed = try await stage.cache.entry(for: film)
                #expect(removed == nil)
            }
        }
    }

    @Test("What is being downloaded has a bar that grows, and a rate")
    func progress() async throws {
        try await PlayerStage.with { stage in
            stage.origin.serve(
                "/a.bin",
                .generated(length: 1 << 30, cacheControl: "max-age=60"),
                OriginScript(.throttled(bytesPerSecond: 400_000))
            )
            let film = try CacheRequest(stage.origin.url("/a.bin"))
            let download = Task { _ = try await stage.cache.prefetch(film) }
            try await DevTools.with(stage.base) { page in
                let row = Self.row("/a.bin")
                try await page.waitUntil(row)
                let bar = "\(row)?.querySelector('progress')"
                try await page.waitUntil("\(bar)?.value > 0")
                let first = try await page.evaluate("\(bar).value")
                try await page.waitUntil("\(bar)?.value > \(first)")
                #expect(try await page.evaluate("\(bar).value < \(bar).max") == "true")
                try await page.waitUntil("\(row)?.cells[3].innerText.endsWith('/s')")
            }
            download.cancel()
            _ = await download.result
        }
    }
}
