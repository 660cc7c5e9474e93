import Testing

@_spi(Benchmarks) @testable import TieredCache

@Suite("MemoryLimits", .timeLimit(.minutes(10)))
struct MemoryLimitsTests {
    @Test(arguments: [0, -1, Int.min, Int.max])
    func `A cost limit that makes no sense is refused`(cost: Int) {
        let error = #expect(throws: CacheError.self) { try MemoryLimits(maximumCost: cost) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("\(cost)") == true)
    }

    @Test(arguments: [0, -1])
    func `A count limit that makes no sense is refused`(count: Int) {
        let error = #expect(throws: CacheError.self) {
            try MemoryLimits(maximumCost: 1, maximumCount: count)
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test(arguments: [0, -0.1, 1.1, .nan, .infinity])
    func `A fraction that makes no sense is refused`(fraction: Double) {
        let error = #expect(throws: CacheError.self) {
            try MemoryLimits(maximumCost: 1, maximumEntryFraction: fraction)
        }
        #expect(error?.code == .invalidArgument)
    }

    @Test
    func `The limit of one value is a fraction of all`() throws {
        #expect(try MemoryLimits(maximumCost: 1000).maximumEntryCost == 100)
        #expect(try MemoryLimits(maximumCost: 5).maximumEntryCost == 0)
        let whole = try MemoryLimits(maximumCost: (1 << 56), maximumEntryFraction: 1)
        #expect(whole.maximumEntryCost == 1 << 56)
    }
}
