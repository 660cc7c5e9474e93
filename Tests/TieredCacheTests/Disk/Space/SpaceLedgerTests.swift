import Testing

@_spi(Benchmarks) @testable import TieredCache

/// The byte limit (invariant 4).
@Suite("Disk: space ledger", .timeLimit(.minutes(10)))
struct SpaceLedgerTests {
    @Test("room is asked for above 95 %, and enough to get to 90 %")
    func watermarks() {
        var ledger = SpaceLedger(limit: 1000)
        #expect(ledger.admit(950, isLastTry: false) == .granted)
        #expect(ledger.admit(1, isLastTry: false) == .needsRoom(51))
        ledger.release(950)
        ledger.charge(950)
        #expect(ledger.admit(10, isLastTry: false) == .needsRoom(60))
        #expect(ledger.admit(50, isLastTry: true) == .granted)
        #expect(ledger.admit(1, isLastTry: true) == .needsRoom(101))
        #expect(ledger.bytes + ledger.reserved == 1000)
    }

    @Test("eviction goes on to 90 %, and does not begin below 95 %")
    func excess() {
        var ledger = SpaceLedger(limit: 1000)
        ledger.charge(900)
        #expect(ledger.excess(with: 50) == 0)
        #expect(ledger.excess(with: 51) == 51)
        ledger.limit = 500
        #expect(ledger.excess(with: 0) == 450)
    }

    @Test("what exceeds the limit by itself is too large at once")
    func tooLarge() {
        var ledger = SpaceLedger(limit: 1000)
        #expect(ledger.admit(1001, isLastTry: false) == .tooLarge)
        #expect(ledger.admit(.max, isLastTry: true) == .tooLarge)
        #expect(ledger.reserved == 0)
    }

    @Test("the marks hold for any limit", arguments: [1, 2, 99, 100, 12_345, .max] as [Int64])
    func marks(limit: Int64) {
        let ledger = SpaceLedger(limit: limit)
        #expect(ledger.lowWatermark <= ledger.highWatermark)
        #expect(ledger.highWatermark <= limit)
        #expect(limit < 1000 || ledger.highWatermark - ledger.lowWatermark >= limit / 100 * 5 - 1)
    }
}
