import TieredCache

/// Delays responses of a ``ScriptedOrigin`` until a test opens it, so that no test needs to sleep.
public final class OriginGate: Sendable {
    private struct State {
        var isOpen = false
        var nextWaiter = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Guarded(State())

    /// Creates a closed gate.
    public init() {}

    /// Opens the gate permanently; may be called repeatedly, from any thread.
    public func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns when the gate is open, or when the task is cancelled.
    public func wait() async {
        let waiter = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { add($0, as: waiter) }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: waiter) }?.resume()
        }
    }

    private func add(_ continuation: CheckedContinuation<Void, Never>, as waiter: Int) {
        // A cancellation before this line has found no continuation to resume.
        let passes = state.withLock { state in
            guard !state.isOpen, !Task.isCancelled else { return true }
            state.waiters[waiter] = continuation
            return false
        }
        if passes { continuation.resume() }
    }
}
