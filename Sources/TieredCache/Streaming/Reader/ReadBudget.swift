/// The time limit and the stop conditions of one read.
struct ReadBudget {
    /// Nil for a read that waits as long as its transfer runs, and fails with it.
    let deadline: MonotonicTime?
    /// The number of consecutive transfers that succeeded without bringing the byte.
    var fruitlessTransfers = 0
    private let time: any TimeSource
    private let control: ReadControl?
    private var failures = 0
    private var lastError: CacheError?

    init(deadline: MonotonicTime?, time: any TimeSource, control: ReadControl?) {
        self.deadline = deadline
        self.time = time
        self.control = control
    }

    /// Throws if the read was stopped.
    func checkStop() throws(CacheError) {
        guard let control else { return try Self.checkTask() }
        try control.check()
    }

    /// Throws if the read was cancelled, and after the deadline: the last failure, or `.timedOut`.
    func check(_ offset: Int64) throws(CacheError) {
        try Self.checkTask()
        guard let deadline, time.monotonicTime() >= deadline else { return }
        throw lastError
            ?? CacheError(.timedOut, "byte \(offset) did not come before the read's deadline")
    }

    /// Waits for the end of a comparison of a body with its digests.
    func waitForComparison(_ signal: ProgressSignal, after seen: UInt64) async throws(CacheError) {
        try checkStop()
        try Self.checkTask()
        if let deadline, time.monotonicTime() >= deadline {
            throw CacheError(.timedOut, "the body was not compared before the read's deadline")
        }
        await wait(on: signal, after: seen)
    }

    private static func checkTask() throws(CacheError) {
        guard !Task.isCancelled else { throw .readCancelled }
    }

    /// Waits for a change after `seen`, at most until the deadline or a stop.
    func wait(on signal: ProgressSignal, after seen: UInt64) async {
        await wait(on: signal, after: seen, until: deadline)
    }

    private func wait(
        on signal: ProgressSignal,
        after seen: UInt64,
        until end: MonotonicTime?
    ) async {
        guard control?.begin(waitingOn: signal) ?? true else { return }
        await signal.wait(after: seen, until: end, time)
        control?.end(waitingOn: signal)
    }

    /// Waits before a retry after a transient failure; rethrows any other.
    mutating func retry(after error: CacheError) async throws(CacheError) {
        guard let deadline, error.isTransient, time.monotonicTime() < deadline else { throw error }
        lastError = error
        failures += 1
        fruitlessTransfers = 0
        let delay = Backoff().delay(
            after: failures,
            retryAfter: nil,
            jitter: Double.random(in: 0.5...1)
        )
        let end = min(deadline, time.monotonicTime().advanced(by: delay))
        let signal = ProgressSignal()
        while time.monotonicTime() < end {
            try checkStop()
            await wait(on: signal, after: signal.version, until: end)
        }
    }
}
