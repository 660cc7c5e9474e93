/// How long one read goes on trying.
struct Patience {
    let deadline: MonotonicTime
    /// Flights in a row that ended well and did not bring the byte.
    var fruitless = 0
    private var failures = 0
    private var lastError: CacheError?

    init(deadline: MonotonicTime) {
        self.deadline = deadline
    }

    /// Throws once the time is over: what failed last, or that nothing came.
    func check(_ offset: Int64, _ time: any TimeSource) throws(CacheError) {
        guard time.monotonicTime() >= deadline else { return }
        throw lastError
            ?? CacheError(.timedOut, "byte \(offset) did not come before the read's deadline")
    }

    /// Waits before the next attempt after a failure that may pass; throws any other.
    mutating func retry(
        after error: CacheError,
        _ control: ReadControl,
        _ time: any TimeSource
    ) async throws(CacheError) {
        guard error.isTransient, time.monotonicTime() < deadline else { throw error }
        lastError = error
        failures += 1
        fruitless = 0
        let delay = Backoff().delay(
            after: failures,
            retryAfter: nil,
            jitter: Double.random(in: 0.5...1)
        )
        let end = min(deadline, time.monotonicTime().advanced(by: delay))
        while time.monotonicTime() < end {
            try control.check()
            let seen = control.signal.version
            guard time.monotonicTime() < end else { return }
            await control.wait(after: seen, until: end, time: time)
        }
    }
}
