import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

@Suite(.timeLimit(.minutes(10)))
struct OpenRetryTests {
    private static func settings(_ time: ManualTimeSource) -> ProxySettings {
        var settings = ProxySettings()
        settings.timeSource = time
        return settings
    }

    @Test func pausesDoubleUpToFourSeconds() {
        let time = ManualTimeSource()
        for (jitter, part) in [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)] {
            var retry = OpenRetry(Self.settings(time))
            for pause in [0.25, 0.5, 1, 2, 4, 4] {
                let delay = retry.delay(after: .unavailable, isKnown: false, jitter: jitter)
                #expect(delay == .microseconds(Int64(pause * 1_000_000 * part)))
            }
        }
    }

    @Test func drawnPausesStayWithinTheirHalf() throws {
        for _ in 0..<100 {
            var retry = OpenRetry(Self.settings(ManualTimeSource()))
            let drawn = retry.delay(after: .timedOut, isKnown: true)
            let delay = try #require(drawn)
            #expect(delay >= .milliseconds(125) && delay <= .milliseconds(250))
        }
    }

    @Test func anAttemptForWhatIsKnownHasTheTimeOfAStall() {
        let time = ManualTimeSource()
        var settings = Self.settings(time)
        settings.originTimeout = .seconds(1)
        let retry = OpenRetry(settings)
        time.advance(by: .milliseconds(900))
        #expect(retry.timeLeft() == .milliseconds(100))
        #expect(retry.timeLeft(isKnown: true) == .milliseconds(29_100))
        time.advance(by: .seconds(40))
        #expect(retry.timeLeft() == .milliseconds(1))
        #expect(retry.timeLeft(isKnown: true) == .milliseconds(1))
    }

    @Test func theTimeEnds() {
        let time = ManualTimeSource()
        var retry = OpenRetry(Self.settings(time))
        time.advance(by: .milliseconds(29_900))
        // What is known is asked for to the last moment.
        #expect(retry.delay(after: .unavailable, isKnown: false, jitter: 1) == nil)
        #expect(
            retry.delay(after: .unavailable, isKnown: true, jitter: 1) == .milliseconds(100)
        )
        time.advance(by: .milliseconds(100))
        #expect(retry.delay(after: .unavailable, isKnown: true, jitter: 1) == nil)
    }
}
