import Testing

@testable import TieredCache

@Suite("Pace of a consumer", .timeLimit(.minutes(10)))
struct ConsumerPaceTests {
    private func instant(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    /// A consumer that is waited for in the last `share` percent of each second.
    private func pace(share: Int64, seconds: Int64, from start: Int64 = 0) -> ConsumerPace {
        var pace = ConsumerPace(now: instant(start))
        for second in 0..<seconds {
            let end = start + second * 1000 + 1000
            pace.didWait(from: instant(end - share * 10), to: instant(end))
        }
        return pace
    }

    @Test(
        "A reader is slow that is waited for at least half of the time",
        arguments: [0, 10, 49, 50, 90, 100]
    )
    func share(percent: Int64) {
        #expect(pace(share: percent, seconds: 10).isSlow == (percent >= 50))
        #expect(pace(share: percent, seconds: 10, from: 1_000_000).isSlow == (percent >= 50))
    }

    @Test("It is not said after a moment")
    func patience() {
        #expect(!pace(share: 100, seconds: 1).isSlow)
        #expect(pace(share: 100, seconds: 2).isSlow)
    }

    @Test("A reader that takes bytes faster again is not slow any more")
    func recovers() {
        var pace = pace(share: 100, seconds: 4)
        pace.didWait(from: instant(6900), to: instant(7000))
        #expect(!pace.isSlow)
    }

    @Test("The time in which the transfer had no slot does not count")
    func slot() {
        var pace = ConsumerPace(now: instant(0))
        pace.didWait(from: instant(0), to: instant(1500))
        pace.didWaitForSlot(from: instant(1500), to: instant(60_000))
        pace.didWait(from: instant(60_200), to: instant(60_500))
        #expect(pace.isSlow)
    }
}
