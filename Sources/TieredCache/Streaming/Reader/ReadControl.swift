/// Stops the reads of a reader from any thread: for good, or until it is resumed.
///
/// States: `open` ⇄ `interrupted`; from both → `cancelled`, which stays.
final class ReadControl: Sendable {
    private struct State {
        var isCancelled = false
        var isInterrupted = false
    }

    /// What reads wait on; bumped when one of them has to look again.
    let signal: ProgressSignal
    private let state = Guarded(State())

    init(signal: ProgressSignal) {
        self.signal = signal
    }

    /// Ends all reads, present and future.
    func cancel() {
        state.withLock { $0.isCancelled = true }
        signal.bump()
    }

    /// Ends all reads until ``resume()``.
    func interrupt() {
        state.withLock { $0.isInterrupted = true }
        signal.bump()
    }

    /// Takes back ``interrupt()``.
    func resume() {
        state.withLock { $0.isInterrupted = false }
    }

    /// Whether reads may go on.
    var isOpen: Bool {
        state.withLock { !$0.isCancelled && !$0.isInterrupted }
    }

    /// Throws where a read must not go on.
    func check() throws(CacheError) {
        let (isCancelled, isInterrupted) = state.withLock { ($0.isCancelled, $0.isInterrupted) }
        guard !isCancelled, !Task.isCancelled else {
            throw CacheError(.cancelled, "the read was cancelled")
        }
        guard !isInterrupted else {
            throw CacheError(.interrupted, "the read was interrupted; resume the reader first")
        }
    }

    /// Waits for a change after `seen`, or for the instant `end`.
    func wait(after seen: UInt64, until end: MonotonicTime, time: any TimeSource) async {
        let rest = time.monotonicTime().duration(to: end)
        guard rest > .zero, !Task.isCancelled else { return }
        let signal = signal
        let alarm = Task {
            do {
                try await time.sleep(for: rest)
                signal.bump()
            } catch {
                // Cancelled: the change has come before.
            }
        }
        await signal.wait(after: seen)
        alarm.cancel()
    }
}
