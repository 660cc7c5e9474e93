import HTTPCaching

/// Limits bytes to a steady rate with short bursts.
///
/// Time is an argument. Debt is allowed: received bytes cannot be sent back, so they are taken at
/// once, and the caller waits until the debt is paid.
struct TokenBucket: Hashable, Sendable {
    /// Bytes per second.
    let rate: Int64
    /// The maximum number of bytes saved up.
    let burst: Int64

    private var tokens: Double
    private var filledAt: MonotonicTime

    /// - Parameters:
    ///   - rate: bytes per second, at least 1.
    ///   - burst: the maximum number of bytes saved up; by default those of a quarter of a second.
    ///   - now: the current time; the bucket begins full.
    init(rate: Int64, burst: Int64? = nil, now: MonotonicTime) {
        self.rate = max(1, rate)
        self.burst = max(1, burst ?? self.rate / 4)
        tokens = Double(self.burst)
        filledAt = now
    }

    /// Takes received bytes.
    ///
    /// - Parameters:
    ///   - count: their number.
    ///   - now: the current time.
    /// - Returns: the time to wait before more may be received.
    mutating func take(_ count: Int, now: MonotonicTime) -> Duration {
        let elapsed = Double(max(0, filledAt.duration(to: now).saturatedNanoseconds)) / 1e9
        tokens = min(Double(burst), tokens + elapsed * Double(rate)) - Double(count)
        filledAt = max(filledAt, now)
        guard tokens < 0 else { return .zero }
        // Bounded, or a rate of 1 and a large chunk would exceed the numbers of `Int64`.
        let seconds = min(-tokens / Double(rate), 3600)
        return .nanoseconds(Int64(seconds * 1e9))
    }
}
