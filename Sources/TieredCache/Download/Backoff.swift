import HTTPCaching

/// The wait before the next attempt: full jitter under a doubling ceiling.
///
/// With the defaults the wait after the n-th attempt without progress is drawn from
///
/// | n | 1 | 2 | 3 | 4 | 5 and more |
/// | --- | --- | --- | --- | --- | --- |
/// | at most | 0.5 s | 1 s | 2 s | 4 s | 8 s |
package struct Backoff: Hashable, Sendable {
    /// The ceiling after the first attempt.
    package var base: Duration
    /// The highest ceiling.
    package var cap: Duration

    package init(base: Duration = .milliseconds(500), cap: Duration = .seconds(8)) {
        self.base = base
        self.cap = cap
    }

    /// The wait after `attempts` attempts without progress.
    ///
    /// - Parameters:
    ///   - attempts: The number of attempts in a row that brought no byte, at least 1.
    ///   - retryAfter: The wait that the origin requested; the result is at least as long.
    ///   - jitter: A number from 0 to 1 that places the wait between zero and its ceiling.
    /// - Returns: The wait.
    package func delay(after attempts: Int, retryAfter: Duration?, jitter: Double) -> Duration {
        let ceiling = ceiling(after: attempts)
        // The source of jitter is the caller's; a NaN would trap in the conversion below.
        let share = jitter.isNaN ? 1 : min(1, max(0, jitter))
        let nanoseconds = Double(ceiling.saturatedNanoseconds) * share
        // Below 2^63 even after rounding: the cap is applied before the conversion.
        let wait = Duration.nanoseconds(Int64(min(nanoseconds, 9e18)))
        return max(wait, retryAfter ?? .zero)
    }

    private func ceiling(after attempts: Int) -> Duration {
        var ceiling = max(.zero, min(base, cap))
        // 62 doublings exceed every cap, however many attempts there were.
        for _ in 0..<min(62, max(1, attempts) - 1) where ceiling < cap {
            ceiling = min(cap, ceiling * 2)
        }
        return ceiling
    }
}
