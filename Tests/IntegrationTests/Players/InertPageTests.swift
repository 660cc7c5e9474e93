import HTTPTypes
import SystemPackage
import TestParts
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// What an origin sends is dead in a real browser's tab or frame at the proxy's address, and films
/// and pictures are shown all the same.
@Suite(
    .tags(.player, .realTime),
    .serialized,
    .timeLimit(.minutes(10)),
    PlayerTool.chromium.isInstalled,
    PlayerTool.ffmpeg.isInstalled
)
struct InertPageTests {
    /// Where the token is, what the status page says, and a service worker for all of the proxy.
    private static let script = """
        window.ran = 1;
        fetch('stolen?' + location.pathname.split('/')[1]);
        navigator.serviceWorker && navigator.serviceWorker.register(location.href, {scope: '/'});
        """
    private static let names = [
        "page.html", "page.svg", "page.xml", "typeless.mp4", "guarded.html", "page.mpd", "old.html",
    ]

    private static func serveAttacks(_ origin: ScriptedOrigin) {
        let html = "<!doctype html><title>attack</title><script>\(script)</script>attack"
        let xml = "<?xml version='1.0'?>"
        let inside = "xmlns='http://www.w3.org/1999/xhtml'><![CDATA[\(script)]]></script>"
        let namespace = "xmlns='http://www.w3.org/2000/svg'"
        func serve(_ name: String, _ text: String, _ type: String?, _ policy: String? = nil) {
            var page = OriginResource.text(text, contentType: type, cacheControl: "max-age=600")
            if let policy, let name = HTTPField.Name("Content-Security-Policy") {
                page.fields[name] = policy
            }
            if let name = HTTPField.Name("Service-Worker-Allowed") { page.fields[name] = "/" }
            origin.serve("/\(name)", page)
        }
        serve("page.html", html, "text/html")
        serve(
            "page.svg",
            "\(xml)<svg \(namespace)><script><![CDATA[\(script)]]></script></svg>",
            "image/svg+xml"
        )
        serve("page.xml", "\(xml)<a><script \(inside)</a>", "application/xml")
        serve("typeless.mp4", html, nil)
        serve("guarded.html", html, "text/html", "script-src 'unsafe-inline'; report-uri /r")
        serve(
            "page.mpd",
            "\(xml)<MPD type='static'><script \(inside)</MPD>",
            "application/dash+xml"
        )
        serve("old.html", html, "text/html; charset=utf-8")
    }

    /// What is stored is answered as what has just come, so each page is seen twice.
    private func attack(_ page: DevTools, _ urls: [String]) async throws {
        for url in urls + urls {
            try await page.navigate(url)
            #expect(try await page.evaluate("window.ran") == "undefined", "\(url)")
        }
    }

    private func expectNothingStolen(_ stage: PlayerStage) {
        // Beside the page, so through the proxy from the origin.
        let stolen = stage.origin.log.exchanges.filter { $0.target.contains("stolen") }
        #expect(stolen.isEmpty)
    }

    @Test("No script of an origin runs in a tab")
    func tabs() async throws {
        try await PlayerStage.with { stage in
            Self.serveAttacks(stage.origin)
            let urls = try Self.names.map(stage.url)
            try await DevTools.with(stage.base) { try await attack($0, urls) }
            expectNothingStolen(stage)
        }
    }

    @Test("Nor in a tab of a browser that does not say what it wants a resource for")
    func oldBrowsers() async throws {
        try await PlayerStage.with { stage in
            Self.serveAttacks(stage.origin)
            let relay = try OldBrowserRelay(to: stage.proxy.port)
            let urls = try Self.names.map { relay.url(try stage.url($0), stage.proxy.port) }
            let start = relay.url(stage.base, stage.proxy.port)
            try await DevTools.with(start) { page in
                try await attack(page, urls)
                // The page itself has come, and nothing of it is alive.
                try await page.navigate(urls[0])
                #expect(try await page.evaluate("document.title") == "attack")
                #expect(try await page.evaluate("self.origin") == "null")
            }
            expectNothingStolen(stage)
            await relay.stop()
        }
    }

    @Test("No script of an origin runs in a frame of another page")
    func frames() async throws {
        try await PlayerStage.with { stage in
            Self.serveAttacks(stage.origin)
            let frames = try Self.names.map { "<iframe src='\(try stage.url($0))'></iframe>" }
            let objects = try Self.names.map { "<object data='\(try stage.url($0))'></object>" }
            let page = "<script>window.told = []; onmessage = e => told.push(e.data)</script>"
            stage.origin.serve(
                "/top.html",
                .text(page + (frames + objects).joined(), contentType: "text/html")
            )
            // A script that ran in a frame would say so to the page around it.
            let telling = Self.script + "parent.postMessage('ran', '*');"
            let html = "<!doctype html><script>\(telling)</script>"
            stage.origin.serve("/page.html", .text(html, contentType: "text/html"))
            try await DevTools.with(stage.origin.url("/top.html")) { page in
                let frames = try await page.evaluate("frames.length")
                let told = try await page.evaluate("told.length")
                // What is refused in an object is no frame.
                #expect(Int(frames) ?? 0 >= 7 && told == "0", "\(frames) frames, \(told)")
            }
            expectNothingStolen(stage)
        }
    }

    @Test("A film and a picture that are opened alone are shown, and in a frame, too")
    func films() async throws {
        try await PlayerStage.with { stage in
            try stage.serve("fast.mp4")
            let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='7' height='5'/>"
            let film = try stage.url("fast.mp4")
            stage.origin.serve("/dot.svg", .text(svg, contentType: "image/svg+xml"))
            let html = """
                <iframe src='\(film)'></iframe><img id=i src='\(try stage.url("dot.svg"))'>
                <video id=v src='\(film)'></video><script>
                fetch('\(film)', {headers: {Range: 'bytes=0-9'}}).then(async r => {
                    window.fetched = r.status + ' ' + (await r.arrayBuffer()).byteLength })
                </script>
                """
            stage.origin.serve("/top.html", .text(html, contentType: "text/html"))
            try await DevTools.with(film) { page in
                let video = "document.querySelector('video')"
                try await page.askUntil("\(video)?.readyState >= 2 || \(video)?.error")
                #expect(try await page.evaluate("\(video).videoWidth > 0") == "true")
                try await page.navigate(stage.origin.url("/top.html"))
                try await page.askUntil("window.fetched")
                #expect(try await page.evaluate("fetched") == "206 10")
                #expect(try await page.evaluate("i.naturalWidth") == "7")
                try await page.askUntil("v.readyState >= 1 || v.error")
                #expect(try await page.evaluate("v.videoWidth > 0") == "true")
            }
        }
    }
}
