import Testing

@testable import TieredCache

@Suite("Waits between attempts", .timeLimit(.minutes(10)))
struct BackoffTests {
    @Test("The ceiling doubles up to its cap")
    func ceilings() {
        let expected: [Int: Double] = [1: 0.5, 2: 1, 3: 2, 4: 4, 5: 8, 6: 8, 1000: 8, 0: 0.5]
        for (attempts, seconds) in expected {
            let backoff = Backoff()
            #expect(
                backoff.delay(after: attempts, retryAfter: nil, jitter: 1) == .seconds(seconds)
            )
            #expect(backoff.delay(after: attempts, retryAfter: nil, jitter: 0) == .zero)
            #expect(
                backoff.delay(after: attempts, retryAfter: nil, jitter: 0.5)
                    == .seconds(seconds / 2)
            )
        }
    }

    @Test("Retry-After wins where it is longer")
    func retryAfter() {
        let backoff = Backoff()
        #expect(backoff.delay(after: 1, retryAfter: .seconds(3), jitter: 1) == .seconds(3))
        #expect(backoff.delay(after: 5, retryAfter: .seconds(3), jitter: 1) == .seconds(8))
    }

    @Test("Senseless values do not trap")
    func senseless() {
        for jitter in [Double.nan, .infinity, -.infinity, -1, 2] {
            for base in [Duration.zero, .seconds(-1), .seconds(Int64.max), .nanoseconds(1)] {
                for cap in [Duration.zero, .seconds(-1), .seconds(Int64.max)] {
                    let backoff = Backoff(base: base, cap: cap)
                    for attempts in [Int.min, -1, 0, 1, 70, Int.max] {
                        let delay = backoff.delay(after: attempts, retryAfter: nil, jitter: jitter)
                        #expect(delay >= .zero)
                    }
                }
            }
        }
    }
}
