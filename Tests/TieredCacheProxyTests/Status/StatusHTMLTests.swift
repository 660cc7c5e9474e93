import FoundationEssentials
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache
@testable import TieredCacheProxy

@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct StatusHTMLTests {
    private func row(length: Int64?, stored: Int64) -> StatusRow {
        StatusRow(
            url: "u",
            status: 200,
            length: length,
            stored: stored,
            isComplete: stored == length,
            isPinned: false,
            rate: 0,
            hasForms: true
        )
    }

    @Test func foreignTextIsOnlyText() {
        let text = "<script>\"'&</script>"
        let escaped = StatusHTML.escaped(text)
        #expect(escaped == "&lt;script&gt;&quot;&#39;&amp;&lt;/script&gt;")
        // A combining mark makes one character of itself and what stands before it.
        #expect(!StatusHTML.escaped("<\u{338}b>").unicodeScalars.contains("<"))
    }

    @Test func formsAreDecoded() {
        let form = PageForm("url=http%3A%2F%2Fh%2Fa%20b&x=a+b&bad=%zz&=y&alone&cut=%4")
        #expect(form["url"] == "http://h/a b")
        #expect(form["x"] == "a b")
        #expect(form["bad"] == nil)
        #expect(form["alone"] == nil)
        #expect(form["cut"] == nil)
    }

    @Test func ratesAreOfWhatHasGrown() async throws {
        let time = ManualTimeSource()
        let rates = ProgressRates(time: time)
        #expect(rates.update([("a", 0), ("b", 5)])["a"] == nil)
        time.advance(by: .seconds(2))
        #expect(rates.update([("a", 4096), ("b", 5)]) == ["a": 2048])
        time.advance(by: .seconds(2))
        #expect(rates.update([("a", 4000), ("b", 5)]).isEmpty)
    }

    @Test func metricsNameEverything() {
        var statistics = MediaCache.Statistics()
        statistics.memoryHits = 7
        let text = MetricsPage.text(
            statistics,
            usage: DiskUsage(entries: 3, bytes: 4096, limit: 1 << 20)
        )
        #expect(text.contains("\ntieredcache_memory_hits_total 7\n"))
        #expect(text.contains("\ntieredcache_entries 3\n"))
        #expect(text.contains("# TYPE tieredcache_disk_bytes gauge\n"))
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            #expect(line.split(separator: " ").count == 2, "\(line)")
        }
    }

    @Test func aBarWithoutALengthHasNoPart() {
        func page(_ length: Int64?, stored: Int64) -> String {
            let row = self.row(length: length, stored: stored)
            return StatusHTML.page([row], usage: nil, statistics: MediaCache.Statistics())
        }
        #expect(page(nil, stored: 65_536).contains("<progress></progress> 64 KiB of ?"))
        #expect(page(100, stored: 50).contains("<progress max=\"100\" value=\"50\"></progress>"))
        #expect(page(0, stored: 0).contains("<progress max=\"1\" value=\"1\"></progress>"))
    }

    @Test func remarksAreOnlyText() {
        let row = self.row(length: 1, stored: 1)
        #expect(
            StatusHTML.page([row], more: 3, usage: nil, statistics: MediaCache.Statistics())
                .contains("<p>And 3 more")
        )
        #expect(
            StatusHTML.page([], usage: nil, statistics: MediaCache.Statistics()).contains(
                "Nothing is cached yet"
            )
        )
        let problem = StatusHTML.page(
            [],
            usage: nil,
            statistics: MediaCache.Statistics(),
            problem: "<b>"
        )
        #expect(problem.contains("&lt;b&gt;") && !problem.contains("Nothing is cached"))
    }

    @Test func whatGrowsComesFirstAndTheListEnds() async throws {
        try await ProxyFixture.run { fixture in
            for number in 0...StatusPage.maximumRows {
                let request = try CacheRequest("http://h/\(number)")
                try await fixture.cache.store(Data([1]), for: request, contentType: nil)
            }
            fixture.origin.serve("/z.mp4", .fresh(1000))
            _ = try await fixture.request("GET", "")
            _ = try await fixture.ask("/z.mp4")
            let text = try await fixture.request("GET", "").text
            #expect(text.contains("<p>And 2 more"))
            let first = try #require(text.firstRange(of: "<td class=\"url\">"))
            #expect(text[first.upperBound...].hasPrefix(fixture.origin.url("/z.mp4")))
        }
    }

    @Test func thePageShowsPinsAndRemoves() async throws {
        try await ProxyFixture.run { fixture in
            fixture.origin.serve("/a'<b>.mp4", .fresh(1000))
            fixture.origin.serve("/a.mp4", .fresh(1000))
            _ = try await fixture.ask("/a.mp4")
            let page = try await fixture.request("GET", "")
            #expect(page.status == 200)
            #expect(page["content-type"] == "text/html; charset=utf-8")
            #expect(page.text.contains(fixture.origin.url("/a.mp4")))
            let form = "url=" + fixture.origin.url("/a.mp4")
            let pinned = try await fixture.request("POST", "pin", form)
            #expect(pinned.status == 303)
            #expect(pinned["location"] == fixture.base)
            let request = try CacheRequest(fixture.origin.url("/a.mp4"))
            let entry = try await fixture.cache.entry(for: request)
            #expect(entry?.isPinned == true)
            #expect(try await fixture.request("GET", "").text.contains("pinned"))
            #expect(try await fixture.request("POST", "unpin", form).status == 303)
            let unpinned = try await fixture.cache.entry(for: request)
            #expect(unpinned?.isPinned == false)
            let after = try await fixture.request("GET", "").text
            #expect(!after.contains("pinned"))
            #expect(try await fixture.request("POST", "remove", form).status == 303)
            let removed = try await fixture.cache.entry(for: request)
            #expect(removed == nil)
            #expect(try await fixture.request("POST", "remove", "url=nonsense").status == 400)
            let metrics = try await fixture.request("GET", "metrics")
            #expect(metrics.text.contains("tieredcache_entries 0\n"))
        }
    }
}
