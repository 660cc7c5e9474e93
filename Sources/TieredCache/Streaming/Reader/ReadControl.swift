/// Stops the reads of a reader from any thread: for good, or until it is resumed.
///
/// States: `open` ⇄ `interrupted`; from both → `cancelled`, which stays.
final class ReadControl: Sendable {
    private struct State {
        var isCancelled = false
        var isInterrupted = false
        /// The signals that reads wait for.
        var awaited: [ProgressSignal] = []

        var isOpen: Bool { !isCancelled && !isInterrupted }
    }

    private let state = Guarded(State())

    /// Ends all current and later reads.
    func cancel() { stop { $0.isCancelled = true } }

    /// Ends all reads until ``resume()``.
    func interrupt() { stop { $0.isInterrupted = true } }

    private func stop(_ change: (inout State) -> Void) {
        let awaited = state.withLock { state in
            change(&state)
            return state.awaited
        }
        for signal in awaited { signal.bump() }
    }

    /// Reverts ``interrupt()``.
    func resume() {
        state.withLock { $0.isInterrupted = false }
    }

    /// Whether reads may continue.
    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Throws if a read must not continue.
    func check() throws(CacheError) {
        let (isCancelled, isInterrupted) = state.withLock { ($0.isCancelled, $0.isInterrupted) }
        guard !isCancelled, !Task.isCancelled else { throw .readCancelled }
        guard !isInterrupted else { throw .readInterrupted }
    }

    /// Registers a read that is about to wait; false if it was stopped and must not wait.
    ///
    /// The read has looked at the signal's version before.
    func begin(waitingOn signal: ProgressSignal) -> Bool {
        state.withLock { state in
            guard state.isOpen else { return false }
            state.awaited.append(signal)
            return true
        }
    }

    func end(waitingOn signal: ProgressSignal) {
        state.withLock { state in
            if let index = state.awaited.firstIndex(where: { $0 === signal }) {
                state.awaited.remove(at: index)
            }
        }
    }
}

extension CacheError {
    static let readCancelled = CacheError(.cancelled, "the read was cancelled")
    static let readInterrupted = CacheError(
        .interrupted,
        "the read was interrupted; resume the reader first"
    )
}
