/// An outcome that arrives once and stays; any number of tasks may wait for it.
///
/// The first ``complete(with:)`` wins, later ones change nothing. A later waiter gets the outcome
/// at once, so an outcome is never lost because it came early (invariant 11).
final class Latch<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, CacheError>
    private typealias Waiter = CheckedContinuation<Outcome?, Never>

    private struct State {
        var outcome: Outcome?
        var waiters: [UInt64: Waiter] = [:]
        /// Waiters cancelled before they had a continuation.
        var cancelledEarly: Set<UInt64> = []
        var lastWaiter: UInt64 = 0
        /// Those that called and have neither got the outcome nor been cancelled.
        var waiting = 0
    }

    private let state = Guarded(State())
    private let didComplete: @Sendable () -> Void

    /// Creates a latch without outcome.
    ///
    /// - Parameter didComplete: called once the outcome is set.
    init(didComplete: @escaping @Sendable () -> Void = {}) {
        self.didComplete = didComplete
    }

    /// The outcome, if there is one yet.
    var outcome: Outcome? {
        state.withLock { $0.outcome }
    }

    /// How many tasks wait.
    var waiters: Int {
        state.withLock { $0.outcome == nil ? $0.waiting : 0 }
    }

    /// Sets the outcome and wakes all waiters.
    ///
    /// - Returns: whether this call set it.
    @discardableResult
    func complete(with outcome: Outcome) -> Bool {
        LockChecker.assertHoldsNoValue()
        let waiters: [Waiter]? = state.withLock { state in
            guard state.outcome == nil else { return nil }
            state.outcome = outcome
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        // Outside the lock: resuming takes the lock of the task (swiftlang/swift#85668).
        for waiter in waiters ?? [] { waiter.resume(returning: outcome) }
        if waiters != nil { didComplete() }
        return waiters != nil
    }

    /// Waits for the outcome, or until the waiting task is cancelled.
    ///
    /// - Parameter whenAbandoned: called when a waiter was cancelled and no other is left.
    /// - Returns: the outcome; nil if the task was cancelled before there was one.
    func wait(whenAbandoned: @Sendable () -> Void = {}) async -> Outcome? {
        let (id, early): (UInt64, Outcome?) = state.withLock { state in
            guard state.outcome == nil else { return (0, state.outcome) }
            state.lastWaiter += 1
            state.waiting += 1
            return (state.lastWaiter, nil)
        }
        if let early { return early }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { register($0, as: id) }
        } onCancel: {
            if cancelWaiter(id) { whenAbandoned() }
        }
    }

    private func register(_ waiter: Waiter, as id: UInt64) {
        let (resumes, outcome): (Bool, Outcome?) = state.withLock { state in
            let wasCancelled = state.cancelledEarly.remove(id) != nil
            if wasCancelled || state.outcome != nil { return (true, state.outcome) }
            state.waiters[id] = waiter
            return (false, nil)
        }
        if resumes { waiter.resume(returning: outcome) }
    }

    /// - Returns: whether no waiter is left.
    private func cancelWaiter(_ id: UInt64) -> Bool {
        let (waiter, isAbandoned): (Waiter?, Bool) = state.withLock { state in
            guard state.outcome == nil else { return (nil, false) }
            state.waiting -= 1
            let waiter = state.waiters.removeValue(forKey: id)
            if waiter == nil { state.cancelledEarly.insert(id) }
            return (waiter, state.waiting == 0)
        }
        waiter?.resume(returning: nil)
        return isAbandoned
    }
}
