import HTTPCaching
import Testing

@testable import TieredCache

@Suite("Rate and progress", .timeLimit(.minutes(10)))
struct DownloadProgressTests {
    private func instant(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    @Test("A steady stream has its rate, and a new rate takes over within seconds")
    func rate() throws {
        var estimator = RateEstimator(now: instant(0))
        #expect(estimator.bytesPerSecond == nil)
        estimator.didReceive(100, now: instant(0.1))
        #expect(estimator.bytesPerSecond == nil)
        for step in 2...50 { estimator.didReceive(100, now: instant(Double(step) / 10)) }
        #expect(abs(try #require(estimator.bytesPerSecond) - 1000) < 1)
        for step in 51...150 { estimator.didReceive(200, now: instant(Double(step) / 10)) }
        #expect(abs(try #require(estimator.bytesPerSecond) - 2000) < 50)
    }

    @Test("Time that stands still divides nothing by zero")
    func standstill() {
        var estimator = RateEstimator(now: instant(1))
        for _ in 0..<10 { estimator.didReceive(1, now: instant(1)) }
        #expect(estimator.bytesPerSecond == nil)
        estimator.didReceive(0, now: instant(1e9))
        #expect(estimator.bytesPerSecond ?? .nan >= 0)
    }

    @Test("The time left follows from length, offset and rate")
    func timeLeft() {
        func left(_ length: Int64?, _ rate: Double?) -> Duration? {
            DownloadProgress(
                offset: 500,
                completeLength: length,
                bytesReceived: 500,
                bytesPerSecond: rate
            ).timeLeft
        }
        #expect(left(1500, 100) == .seconds(10))
        #expect(left(400, 100) == .zero)
        #expect(left(nil, 100) == nil)
        #expect(left(1500, nil) == nil)
        #expect(left(1500, 0) == nil)
        #expect(left(.max, 1) == .seconds(1_000_000_000))
    }
}
