import HTTPCaching

/// How many bytes may pass now, at a steady rate with room for a short burst.
///
/// Time is an argument. Debt is allowed: bytes that have arrived cannot be sent back, so they are
/// taken at once and whoever took them waits until the debt is paid.
struct TokenBucket: Hashable, Sendable {
    /// Bytes per second.
    let rate: Int64
    /// The most that can be saved up, in bytes.
    let burst: Int64

    private var tokens: Double
    private var filledAt: MonotonicTime

    /// - Parameters:
    ///   - rate: bytes per second, at least 1.
    ///   - burst: the most that can be saved up; by default a quarter of a second's worth.
    ///   - now: the present instant; the bucket begins full.
    init(rate: Int64, burst: Int64? = nil, now: MonotonicTime) {
        self.rate = max(1, rate)
        self.burst = max(1, burst ?? self.rate / 4)
        tokens = Double(self.burst)
        filledAt = now
    }

    /// Takes bytes that have arrived.
    ///
    /// - Parameters:
    ///   - count: how many.
    ///   - now: the present instant.
    /// - Returns: how long to wait before more may come.
    mutating func take(_ count: Int, now: MonotonicTime) -> Duration {
        let elapsed = Double(max(0, filledAt.duration(to: now).saturatedNanoseconds)) / 1e9
        tokens = min(Double(burst), tokens + elapsed * Double(rate)) - Double(count)
        filledAt = max(filledAt, now)
        guard tokens < 0 else { return .zero }
        let seconds = min(-tokens / Double(rate), 3600)
        return .nanoseconds(Int64(seconds * 1e9))
    }
}
