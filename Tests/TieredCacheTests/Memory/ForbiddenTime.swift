import HTTPCaching
import Testing

@_spi(Benchmarks) @testable import TieredCache

/// A time source that must not be asked.
struct ForbiddenTime: TimeSource {
    func wallTime() -> WallTime {
        Issue.record("the date was asked for")
        return WallTime(nanoseconds: 0)
    }

    func monotonicTime() -> MonotonicTime {
        Issue.record("the time was asked for")
        return MonotonicTime(nanoseconds: 0)
    }

    func sleep(for duration: Duration) async throws {
        Issue.record("a task slept")
    }
}
