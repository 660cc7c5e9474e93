import FoundationEssentials
import TestParts
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// The metrics, read as strictly as `promtool check metrics` reads them, and by its advice on
/// names.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct MetricsPageTests {
    @Test("The reader of these tests lets nothing pass that is no page")
    func reader() throws {
        let page = try PrometheusText(
            "# HELP a A\\\\\\nb.\n# TYPE a counter\na{b=\"c\\\"\\\\,}\\n\",d=\"\"} 1e3\na -2.5\n"
        )
        #expect(page.families["a"]?.help == "A\\\nb.")
        let labels = ["b": "c\"\\,}\n", "d": ""]
        #expect(page.families["a"]?.samples[.init(name: "a", labels: labels)] == 1000)
        #expect(page.families["a"]?.samples[.init(name: "a", labels: [:])] == -2.5)
        let head = "# HELP a x\n# TYPE a gauge\n"
        for text in [
            "a 1\n", head + "a 1", head + "a 1\n\n", head + "b 1\n", head + "a\n", head + "a x\n",
            head + "a 1\r\n", head + "a  1\n", head + "a 1 2\n", head + "a 1\na 2\n",
            head + "a{b=\"1\"} 1\na{b=\"1\"} 1\n", head + "a{b=\"\\x\"} 1\n", head + "a{b=1} 1\n",
            head + "a{b=\"1} 1\n", head + "a{1b=\"1\"} 1\n", head + "a{b=\"1\",b=\"2\"} 1\n",
            head + "a{b=\"1\"c=\"2\"} 1\n", head + head, head + "a 1\n# HELP a x\n",
            head + "a 1\n# TYPE a gauge\n", head + "# TYPE b gauge\nb 1\na 1\n",
            "# HELP a \n", "# HELP a\n", "# TYPE a meter\n", "# HELP 1a x\n", "#HELP a x\n",
            "# HELP a \\x\n", "# a comment\n", " # HELP a x\n",
        ] {
            #expect(throws: PrometheusText.Malformed.self, "\(text.debugDescription)") {
                try PrometheusText(text)
            }
        }
    }

    /// What `promtool` finds fault with.
    private func check(_ answer: RawResponse, _ state: String) throws -> PrometheusText {
        #expect(answer["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(answer["content-length"] == "\(answer.body.count)")
        let page = try PrometheusText(answer.text)
        for (name, family) in page.families {
            let isPlain = name.utf8.allSatisfy {
                $0 == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
            }
            #expect(isPlain && name.hasPrefix("tieredcache_"), "\(name), \(state)")
            #expect(family.help != nil && family.samples.count == 1, "\(name), \(state)")
            #expect(
                family.samples.values.allSatisfy { $0 >= 0 && $0.isFinite },
                "\(name), \(state)"
            )
            #expect(["counter", "gauge"].contains(family.type), "\(name), \(state)")
            // By convention counters, and only they, are totals.
            #expect((family.type == "counter") == name.hasSuffix("_total"), "\(name), \(state)")
            for word in ["_count", "_sum", "_bucket", "_info", "_counter", "_gauge", "_kib", "_mb"]
            {
                #expect(!name.hasSuffix(word) && !name.contains(word + "_"), "\(name), \(state)")
            }
        }
        return page
    }

    private func value(_ name: String, _ page: PrometheusText) -> Double? {
        page.families["tieredcache_" + name]?.samples.values.first
    }

    @Test func theyAreWellFormedAndWellNamedInEveryState() async throws {
        try await ProxyFixture.run { fixture in
            let empty = try check(try await fixture.request("GET", "metrics"), "empty")
            #expect(empty.families.count >= 20)
            #expect(empty.families.values.filter { $0.type == "counter" }.count >= 17)
            #expect(value("entries", empty) == 0 && value("misses_total", empty) == 0)
            fixture.origin.serve("/a.mp4", .fresh(100_000))
            for _ in 0..<3 { _ = try await fixture.ask("/a.mp4") }
            let used = try check(try await fixture.request("GET", "metrics"), "used")
            #expect(value("origin_bytes_total", used) == 100_000)
            #expect(value("entries", used) == 1)
            fixture.origin.serve("/b.mp4", OriginScript(.dropped()))
            let request = try CacheRequest(fixture.origin.url("/b.mp4"))
            await #expect(throws: CacheError.self) { try await fixture.cache.data(for: request) }
            let failed = try check(try await fixture.request("GET", "metrics"), "failed")
            // What counts never goes back.
            for (name, family) in used.families where family.type == "counter" {
                let before = family.samples.values.first ?? 0
                let after = failed.families[name]?.samples.values.first ?? -1
                #expect(after >= before, "\(name)")
            }
        }
    }

    @Test("Without a disk there are figures and a page all the same")
    func withoutDisk() async throws {
        var configuration = MediaCache.Configuration()
        configuration.directory = nil
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let proxy = try await PlayerProxy.start(cache: cache)
        let (port, base) = (proxy.port, proxy.base.absoluteString)
        let answers = try await onThread {
            try ["", "metrics"].map { page in
                let connection = try RawConnection(port: port)
                let target = base.dropFirst("http://127.0.0.1:\(port)".count) + page
                try connection.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
                return try connection.receiveResponse()
            }
        }
        await proxy.stop()
        await cache.shutdown()
        #expect(answers.map(\.status) == [200, 200])
        let page = try check(answers[1], "without a disk")
        #expect(value("memory_hits_total", page) == 0)
        #expect(page.families["tieredcache_disk_bytes"] == nil)
    }
}
