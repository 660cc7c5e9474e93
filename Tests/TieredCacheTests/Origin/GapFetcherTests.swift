import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct GapFetcherTests {
    @Test("A byte behind an end that was found meanwhile has no gap, and one near it a short one")
    func behindTheEnd() throws {
        let store = try TestDisk(.memory).open()
        let entry = try store.makeEntry(
            for: CacheKey(stored: "a"),
            metadata: [],
            completeLength: 100_000
        )
        #expect(GapFetcher.gap(in: entry, at: 70_000, limit: .max) == 65_536..<100_000)
        #expect(GapFetcher.gap(in: entry, at: 100_000, limit: .max) == 65_536..<100_000)
        #expect(GapFetcher.gap(in: entry, at: 400_000, limit: .max).isEmpty)
        #expect(GapFetcher.gap(in: entry, at: 1 << 62, limit: .max).isEmpty)
    }
}
