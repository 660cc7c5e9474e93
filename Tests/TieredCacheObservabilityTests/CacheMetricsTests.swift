import HTTPTypes
import MetricsTestKit
import Testing
import TieredCache
import TieredCacheObservability
import TieredCacheTesting

@Suite("Metrics", .timeLimit(.minutes(1)))
struct CacheMetricsTests {
    @Test("counters get what was added, gauges the usage of the disk")
    func report() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            let metrics = CacheMetrics(
                of: observed.cache,
                dimensions: [("cache", "posters")],
                factory: observed.metrics
            )
            let request = try CacheRequest("http://origin.example/poster")
            _ = try await observed.cache.data(for: request)
            _ = try await observed.cache.data(for: request)
            await metrics.report()
            let hits = try observed.metrics.expectCounter(
                "tieredcache_hits",
                [("cache", "posters"), ("tier", "memory")]
            )
            let misses = try observed.metrics.expectCounter(
                "tieredcache_misses",
                [("cache", "posters"), ("reason", "absent")]
            )
            #expect(hits.totalValue == 1 && misses.totalValue == 1)
            let entries = try observed.metrics.expectGauge(
                "tieredcache_disk_entries",
                [("cache", "posters")]
            )
            #expect(entries.lastValue == 1)
            for _ in 0..<3 { _ = try await observed.cache.data(for: request) }
            await metrics.report()
            #expect(hits.values == [1, 3] && misses.values == [1])
        }
    }

    @Test("a task reports at each interval, and a last time when it is cancelled")
    func interval() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            let clock = ManualTimeSource()
            let metrics = CacheMetrics(
                of: observed.cache,
                factory: observed.metrics,
                timeSource: clock
            )
            let task = Task { await metrics.run(every: .seconds(5)) }
            await clock.waitForSleepers()
            let request = try CacheRequest("http://origin.example/poster")
            _ = try await observed.cache.data(for: request)
            clock.advance(by: .seconds(5))
            await clock.waitForSleepers()
            let misses = try observed.metrics.expectCounter(
                "tieredcache_misses",
                [("reason", "absent")]
            )
            #expect(misses.totalValue == 1)
            _ = try await observed.cache.data(for: request)
            task.cancel()
            await task.value
            let hits = try observed.metrics.expectCounter("tieredcache_hits", [("tier", "memory")])
            #expect(hits.totalValue == 1)
        }
    }

    @Test("each counter of the statistics is reported, with labels of its own")
    func completeness() async throws {
        try await ObservedCache.run(ObservedCache.whole) { observed in
            _ = CacheMetrics(of: observed.cache, factory: observed.metrics)
            let counters = observed.metrics.counters
            // All but the sum of the misses.
            let fields = Mirror(reflecting: observed.cache.statistics).children.count
            #expect(counters.count == fields - 1)
        }
    }

    @Test("the time of a request to the origin is measured, by method and result")
    func durations() async throws {
        let script: ScriptedTransport.Script = { _, number in
            guard number == 0 else { return ScriptedResponse(failure: .connect) }
            return ScriptedResponse(
                status: 200,
                fields: [.contentLength: "3"],
                steps: [.delay(.milliseconds(250)), .bytes([1, 2, 3])]
            )
        }
        try await ObservedCache.run(script) { observed in
            let request = try CacheRequest("http://origin.example/film")
            let body = Task { try await observed.cache.data(for: request) }
            await observed.time.waitForSleeper(within: .milliseconds(250))
            observed.time.advance(by: .milliseconds(250))
            #expect(try await body.value.count == 3)
            await #expect(throws: CacheError.self) {
                try await observed.cache.data(for: CacheRequest("http://origin.example/other"))
            }
            await observed.cache.shutdown()
            let label = "tieredcache_origin_request_duration"
            let good = try observed.metrics.expectTimer(
                label,
                [("method", "GET"), ("result", "200")]
            )
            #expect(good.values == [250_000_000])
            let bad = try observed.metrics.expectTimer(
                label,
                [("method", "GET"), ("result", "connect")]
            )
            #expect(bad.values == [0])
        }
    }
}
