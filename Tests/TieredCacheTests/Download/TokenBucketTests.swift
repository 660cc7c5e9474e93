import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct TokenBucketTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    @Test("A burst passes, then the rate holds")
    func rate() {
        var bucket = TokenBucket(rate: 1000, burst: 500, now: at(0))
        #expect(bucket.take(500, now: at(0)) == .zero)
        #expect(bucket.take(100, now: at(0)) == .milliseconds(100))
        #expect(bucket.take(100, now: at(100)) == .milliseconds(100))
        // A caller that does not wait owes more.
        #expect(bucket.take(100, now: at(100)) == .milliseconds(200))
    }

    @Test("What is saved up is bounded; a clock that stands still or steps back is no gift")
    func bounds() {
        var bucket = TokenBucket(rate: 1000, burst: 500, now: at(0))
        #expect(bucket.take(600, now: at(1_000_000)) == .milliseconds(100))
        #expect(bucket.take(0, now: at(0)) == .milliseconds(100))
        var slow = TokenBucket(rate: 0, burst: 0, now: at(0))
        #expect(slow.take(.max, now: at(0)) == .seconds(3600))
    }

    @Test("Whatever is asked when, no more passes than the rate and one burst")
    func longRun() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(seed: seed)
        for _ in 0..<200 {
            // No wait is longer than an hour, which slower rates would need for what is asked here.
            let rate = Int64.random(in: 100...100_000, using: &random)
            var bucket = TokenBucket(rate: rate, now: at(0))
            var (now, passed) = (at(0), Int64(0))
            for _ in 0..<50 {
                let count = Int.random(in: 1...50_000, using: &random)
                passed += Int64(count)
                now = now.advanced(by: bucket.take(count, now: now))
                now = now.advanced(by: .milliseconds(Int64.random(in: 0...20, using: &random)))
            }
            let seconds = Double(now.nanoseconds) / 1e9
            let allowed = Double(rate) * seconds + Double(bucket.burst) + 2
            #expect(Double(passed) <= allowed, "seed \(seed)")
        }
    }
}
