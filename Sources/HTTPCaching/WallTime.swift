/// An instant of the calendar: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
///
/// HTTP uses dates, so ages and lifetimes are differences of wall times. The range is years 1677 to
/// 2262; arithmetic saturates at its ends, because dates come from untrusted peers.
public struct WallTime: Hashable, Comparable, Sendable {
    /// Nanoseconds since the epoch; negative before it.
    public let nanoseconds: Int64

    /// Creates an instant from nanoseconds since the epoch.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Creates an instant from whole seconds since the epoch, clamped to the range of the type.
    public init(seconds: Int64) {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        self.nanoseconds = overflow ? (seconds < 0 ? .min : .max) : product
    }

    /// Whole seconds since the epoch, rounded down.
    public var seconds: Int64 {
        let quotient = nanoseconds / 1_000_000_000
        return nanoseconds % 1_000_000_000 < 0 ? quotient - 1 : quotient
    }

    /// The instant `duration` later, clamped to the range of the type.
    public func advanced(by duration: Duration) -> WallTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        guard overflow else { return WallTime(nanoseconds: sum) }
        return WallTime(nanoseconds: duration < .zero ? .min : .max)
    }

    /// How much later `other` is than this instant; negative if it is earlier.
    public func duration(to other: WallTime) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        guard overflow else { return .nanoseconds(difference) }
        return .nanoseconds(other > self ? Int64.max : Int64.min)
    }

    /// Orders instants from earlier to later.
    public static func < (left: WallTime, right: WallTime) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// The duration in nanoseconds, clamped to the range of `Int64`.
    package var saturatedNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflow2) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        guard overflow || overflow2 else { return sum }
        return seconds < 0 ? .min : .max
    }
}
