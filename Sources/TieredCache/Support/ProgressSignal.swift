import Synchronization

/// Counts changes of a state and wakes the tasks that wait for the next change.
///
/// A waiter reads ``version``, looks at the state, and waits for a version other than the one it
/// read; so no change is ever missed. May be used from any thread.
final class ProgressSignal: Sendable {
    private struct State {
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        /// Waiters cancelled before they were registered.
        var cancelled: Set<UInt64> = []
    }

    private let state = Guarded(State())
    /// Changes under the lock alone: a waiter is registered before a change, or sees it.
    ///
    /// An atomic, since whoever may wait reads it first, and most do not wait.
    private let changes = Atomic<UInt64>(0)
    private let lastWaiter = Atomic<UInt64>(0)

    /// How often the state has changed.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Records a change and wakes all waiters.
    func bump() {
        LockChecker.assertHoldsNoValue()
        let waiters = state.withLock { state in
            changes.wrappingAdd(1, ordering: .releasing)
            let waiters = state.waiters
            state.waiters.removeAll(keepingCapacity: true)
            return waiters
        }
        for waiter in waiters.values {
            waiter.resume()
        }
    }

    /// Returns once the version differs from `seen`, or the task is cancelled.
    func wait(after seen: UInt64) async {
        let id = lastWaiter.wrappingAdd(1, ordering: .relaxed).newValue
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                register(continuation, id: id, seen: seen)
            }
        } onCancel: {
            cancel(id)
        }
        if Task.isCancelled { state.withLock { _ = $0.cancelled.remove(id) } }
    }

    /// Waits as long as `condition` holds, which changes before a bump, or until the task is cancelled.
    func wait(while condition: () -> Bool) async {
        while !Task.isCancelled {
            let seen = version
            guard condition() else { return }
            await wait(after: seen)
        }
    }

    /// Returns once the version differs from `seen`, or at the instant `end` at the latest.
    func wait(after seen: UInt64, until end: MonotonicTime?, _ time: any TimeSource) async {
        guard let end else { return await wait(after: seen) }
        let rest = time.monotonicTime().duration(to: end)
        guard rest > .zero else { return }
        let alarm = time.alarm(after: rest) { [self] in bump() }
        await wait(after: seen)
        alarm.cancel()
    }

    private func register(
        _ continuation: CheckedContinuation<Void, Never>,
        id: UInt64,
        seen: UInt64
    ) {
        let isDone = state.withLock { state in
            guard version == seen, !state.cancelled.contains(id) else { return true }
            state.waiters[id] = continuation
            return false
        }
        if isDone {
            continuation.resume()
        }
    }

    private func cancel(_ id: UInt64) {
        let waiter = state.withLock { state in
            if let waiter = state.waiters.removeValue(forKey: id) { return Optional(waiter) }
            state.cancelled.insert(id)
            return nil
        }
        waiter?.resume()
    }
}
