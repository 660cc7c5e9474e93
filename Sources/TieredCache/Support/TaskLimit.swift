import DequeModule

/// Lets a bounded number of tasks do something at once; the others wait, and come in turn.
///
/// A task that is let in must not wait for another one that waits here.
final class TaskLimit: Sendable {
    private struct State {
        var free: Int
        var waiting: Deque<CheckedContinuation<Void, Never>> = []

        /// Takes a place if one is free: then no task waits.
        mutating func take() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }
    }

    private let state: Guarded<State>

    init(_ count: Int) {
        precondition(count > 0)
        state = Guarded(State(free: count))
    }

    /// Waits for a place; give it back with ``leave()``.
    func enter() async {
        if state.withLock({ $0.take() }) { return }
        await withCheckedContinuation { continuation in
            let isLetIn = state.withLock { state in
                if state.take() { return true }
                state.waiting.append(continuation)
                return false
            }
            if isLetIn { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
