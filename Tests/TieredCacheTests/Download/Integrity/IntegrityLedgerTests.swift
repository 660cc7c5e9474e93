import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct IntegrityLedgerTests {
    private func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test("Row 27: once more, then never")
    func twice() {
        var ledger = IntegrityLedger()
        let key = CacheKey(explicit: "a", method: "GET")
        #expect(!ledger.isSecondTry(key, now: at(0)))
        #expect(ledger.didMismatch(key, now: at(0)) == .refetch)
        #expect(ledger.isSecondTry(key, now: at(1)))
        #expect(ledger.didMismatch(key, now: at(2)) == .giveUp)
        #expect(!ledger.isSecondTry(key, now: at(3)))
        #expect(ledger.didMismatch(key, now: at(4)) == .refetch)
        ledger.didMatch(key)
        #expect(!ledger.isSecondTry(key, now: at(5)))
        #expect(ledger.didMismatch(key, now: at(6)) == .refetch)
        #expect(!ledger.isSecondTry(key, now: at(700)))
    }

    @Test("An expectation that was not met is remembered apart, with whether the body is stored")
    func expectations() throws {
        var ledger = IntegrityLedger()
        let key = CacheKey(explicit: "a", method: "GET")
        let one = [try #require(ContentDigest(.md5, bytes: Array(repeating: 1, count: 16)))]
        let other = [try #require(ContentDigest(.md5, bytes: Array(repeating: 2, count: 16)))]
        let decision = ledger.didMismatch(key, expecting: one, isGone: false, now: at(0))
        #expect(decision == .refetch)
        #expect(ledger.isSecondTry(key, expecting: one, now: at(1)))
        #expect(!ledger.isSecondTry(key, expecting: other, now: at(1)))
        #expect(!ledger.isSecondTry(key, now: at(1)))
        #expect(ledger.mustPassStored(key, expecting: one, now: at(1)))
        #expect(!ledger.mustPassStored(key, expecting: other, now: at(1)))
        #expect(ledger.didMismatch(key, now: at(2)) == .refetch)
        #expect(ledger.isSecondTry(key, expecting: other, now: at(3)))
        #expect(!ledger.mustPassStored(key, expecting: other, now: at(3)))
        ledger.didMatch(key, expecting: one)
        #expect(!ledger.mustPassStored(key, expecting: one, now: at(4)))
        ledger.didMeetAgain(key, expecting: one, now: at(5))
        #expect(ledger.mustPassStored(key, expecting: one, now: at(6)))
    }

    @Test("Its memory is bounded; the oldest is forgotten")
    func bounded() {
        var ledger = IntegrityLedger()
        let keys = (0...IntegrityLedger.capacity).map { CacheKey(explicit: "\($0)", method: "GET") }
        for (index, key) in keys.enumerated() {
            #expect(ledger.didMismatch(key, now: at(Int64(index) / 10)) == .refetch)
        }
        let remembered = keys.filter { ledger.isSecondTry($0, now: at(30)) }
        #expect(remembered.count == IntegrityLedger.capacity)
        #expect(remembered.contains(keys[IntegrityLedger.capacity]))
    }
}
