import Testing
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

@Suite("Memory pressure", .timeLimit(.minutes(10)))
struct MemoryPressureTests {
    @Test
    func `Warnings shrink in steps down to a quarter`() {
        var response = MemoryPressureResponse()
        let fractions = (0..<10).compactMap { _ in response.observe(.warning) }
        #expect(fractions.first == 0.8)
        #expect(fractions.last == 0.25)
        #expect(fractions.count == 7)
    }

    @Test
    func `A crisis halves and goes deeper`() {
        var response = MemoryPressureResponse()
        #expect(response.observe(.critical) == 0.5)
        for _ in 0..<9 { _ = response.observe(.critical) }
        #expect(response.fraction == 0.05)
        #expect(response.observe(.warning) == nil)
    }

    @Test
    func `Growth begins after ten calm observations and ends at the whole`() {
        var response = MemoryPressureResponse()
        _ = response.observe(.critical)
        for _ in 0..<9 { #expect(response.observe(.normal) == nil) }
        #expect(response.observe(.normal) == 0.55)
        #expect(response.observe(.warning) != nil)
        for _ in 0..<9 { #expect(response.observe(.normal) == nil) }
        for _ in 0..<20 { _ = response.observe(.normal) }
        #expect(response.fraction == 1)
        #expect(response.observe(.normal) == nil)
    }

    @Test
    func `A monitor limits its cache and lets it grow back`() async throws {
        let source = ScriptedPressureSource()
        let (applied, report) = AsyncStream.makeStream(of: Double.self)
        let limits = try MemoryLimits(maximumCost: 100)
        let cache = MemoryCache<Int, Int>(limits: limits)
        for key in 0..<100 { cache.insert(key, forKey: key, cost: 1) }
        let monitor = MemoryPressureMonitor(source: source) { fraction in
            cache.limit(toFraction: fraction)
            report.yield(fraction)
        }
        var fractions = applied.makeAsyncIterator()
        source.press(.warning, .critical)
        #expect(await fractions.next() == 0.8)
        #expect(await fractions.next() == 0.4)
        #expect(cache.totalCost == 40)
        #expect(cache.statistics.removals[.pressure] == 60)
        #expect(cache.contains(99))
        #expect(!cache.contains(59))
        for _ in 0..<10 { source.press(.normal) }
        #expect(await fractions.next() == 0.45)
        #expect(cache.statistics.costLimit == 45)
        withExtendedLifetime(monitor) {}
    }

    @Test
    func `The engine tells of each step down and of none up`() async throws {
        let source = ScriptedPressureSource()
        let hub = EventHub()
        var configuration = MediaCache.Configuration(directory: nil)
        configuration.memoryLimit = 1 << 20
        let memory = try ResponseMemory(configuration, events: hub, pressure: source)
        var events = hub.events().makeAsyncIterator()
        func nextLimit() async -> Int64? {
            guard case .memoryPressure(let limit)? = await events.next()?.kind else { return nil }
            return limit
        }
        source.press(.warning)
        #expect(await nextLimit() == Int64(Double(1 << 20) * 0.8))
        for _ in 0..<10 { source.press(.normal) }
        source.press(.critical)
        // From 0.85, to which it has grown back.
        let limit = Double(try #require(await nextLimit()))
        #expect(abs(limit - Double(1 << 20) * 0.425) < 2)
        withExtendedLifetime(memory) {}
    }
}
