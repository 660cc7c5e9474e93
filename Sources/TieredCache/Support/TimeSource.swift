// In an optimised build the C types of time belong to whichever module included them first.
import CLinuxCalls
public import HTTPCaching

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// An instant of a clock that never jumps: nanoseconds since an arbitrary start.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    /// Nanoseconds since the clock's start.
    public let nanoseconds: Int64

    /// Creates an instant from nanoseconds since the clock's start.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The instant that lies `duration` later, clamped to the range of the type.
    public func advanced(by duration: Duration) -> MonotonicTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    /// How much later `other` is than this instant, clamped to what 64 bits hold of nanoseconds.
    public func duration(to other: MonotonicTime) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        guard overflow else { return .nanoseconds(difference) }
        return .nanoseconds(other > self ? Int64.max : Int64.min)
    }

    /// Orders instants from earlier to later.
    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// Where time comes from, so that a test can drive it.
///
/// HTTP dates use the wall time; timeouts, rates and expiry use the monotonic time.
public protocol TimeSource: Sendable {
    /// The present date. May jump when the machine's clock is set.
    func wallTime() -> WallTime
    /// The present date or a few milliseconds less, cheap enough to be read at every hit; by
    /// default the same as ``wallTime()``.
    func coarseWallTime() -> WallTime
    /// The present instant; never runs backwards.
    func monotonicTime() -> MonotonicTime
    /// Returns after `duration` of monotonic time, or throws `CancellationError` at once when the
    /// task is cancelled.
    func sleep(for duration: Duration) async throws
}

extension TimeSource {
    /// The same as ``wallTime()``.
    public func coarseWallTime() -> WallTime { wallTime() }
}

/// The machine's clocks.
public struct SystemTimeSource: TimeSource {
    /// Creates the time source; it has no state.
    public init() {}

    /// `CLOCK_REALTIME`.
    public func wallTime() -> WallTime {
        WallTime(nanoseconds: Self.read(CLOCK_REALTIME))
    }

    /// `CLOCK_REALTIME_COARSE` on Linux: the kernel's last tick, read without asking the processor.
    public func coarseWallTime() -> WallTime {
        #if os(Linux)
        WallTime(nanoseconds: Self.read(CLOCK_REALTIME_COARSE))
        #else
        wallTime()
        #endif
    }

    /// `CLOCK_MONOTONIC`.
    public func monotonicTime() -> MonotonicTime {
        MonotonicTime(nanoseconds: Self.read(CLOCK_MONOTONIC))
    }

    /// Sleeps on the continuous clock.
    public func sleep(for duration: Duration) async throws {
        try await Task.sleep(for: duration, clock: .continuous)
    }

    /// Nanoseconds since the clock's start; a clock beyond the year 2262 stands still there.
    static func nanoseconds(_ time: timespec) -> Int64 {
        let seconds = WallTime(seconds: Int64(time.tv_sec))
        return seconds.advanced(by: .nanoseconds(Int64(time.tv_nsec))).nanoseconds
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return nanoseconds(time)
    }
}
