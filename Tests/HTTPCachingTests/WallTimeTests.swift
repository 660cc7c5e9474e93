import HTTPCaching
import Testing

@Suite("WallTime", .timeLimit(.minutes(10)))
struct WallTimeTests {
    @Test("Seconds are rounded down, on both sides of the epoch")
    func seconds() {
        #expect(WallTime(nanoseconds: 1_999_999_999).seconds == 1)
        #expect(WallTime(nanoseconds: -1).seconds == -1)
        #expect(WallTime(nanoseconds: -1_000_000_000).seconds == -1)
        #expect(WallTime(seconds: 5).nanoseconds == 5_000_000_000)
    }

    @Test("Arithmetic saturates")
    func saturation() {
        let late = WallTime(nanoseconds: .max)
        let early = WallTime(nanoseconds: .min)
        #expect(WallTime(seconds: .max) == late)
        #expect(WallTime(seconds: .min) == early)
        #expect(late.advanced(by: .seconds(1)) == late)
        #expect(early.advanced(by: .seconds(-1)) == early)
        #expect(early.advanced(by: .seconds(Int64.max)).nanoseconds == -1)
        #expect(early.duration(to: late) == .nanoseconds(Int64.max))
        #expect(late.duration(to: early) == .nanoseconds(Int64.min))
    }

    @Test("Durations are differences")
    func durations() {
        let start = WallTime(seconds: 10)
        #expect(start.duration(to: start.advanced(by: .milliseconds(-5))) == .milliseconds(-5))
        #expect(start.advanced(by: .seconds(1)) > start)
        #expect(Duration.seconds(-1).saturatedNanoseconds == -1_000_000_000)
        #expect(Duration.seconds(Int64.max).saturatedNanoseconds == .max)
        #expect(Duration.seconds(Int64.min).saturatedNanoseconds == .min)
    }
}
