/// The view that a download has of its operation: the priority, which it forwards to a target.
///
/// The target gets the latest priority, in order, and is not called under a lock. Two threads that
/// set a priority at the same time must not leave the target with the older one: only one thread
/// forwards at a time, and it continues until the latest has been handed over.
package final class OperationContext: Sendable {
    package typealias Target = @Sendable (RequestPriority) -> Void

    fileprivate struct State {
        var priority: RequestPriority
        var target: Target?
        /// Distinguishes targets, so that a new one always gets the priority.
        var generation = 0
        var forwarded: (priority: RequestPriority, generation: Int)?
        var isForwarding = false
    }

    private let state: Guarded<State>

    init(priority: RequestPriority) {
        state = Guarded(State(priority: priority))
    }

    /// The current priority of the operation.
    package internal(set) var priority: RequestPriority {
        get { state.withLock { $0.priority } }
        set { forward { $0.priority = newValue } }
    }

    /// Replaces the target, which gets every change from now on.
    ///
    /// - Parameters:
    ///   - target: the target.
    ///   - known: the priority that it has; the current one is handed over at once if it is another.
    package func forwardPriority(to target: Target?, knowing known: RequestPriority? = nil) {
        let old = forward { state in
            defer {
                state.target = target
                state.generation += 1
                state.forwarded = known.map { ($0, state.generation) }
            }
            return state.target
        }
        // The old target may own much; it is released here, outside the lock.
        withExtendedLifetime(old) {}
    }

    /// Gives a transfer the priority of the operation as long as the subscription lives.
    ///
    /// - Parameters:
    ///   - subscription: the subscription.
    ///   - known: the priority that it was made with.
    package func forwardPriority(to subscription: Subscription, knowing known: RequestPriority) {
        let target: Target = { [weak subscription] in subscription?.priority = $0 }
        forwardPriority(to: target, knowing: known)
    }

    @discardableResult
    private func forward<Result: Sendable>(after change: (inout State) -> Result) -> Result {
        let (result, first) = state.withLock { state in (change(&state), state.begin()) }
        var call = first
        while let (target, priority) = call {
            target(priority)
            call = state.withLock { $0.next() }
        }
        return result
    }
}

extension OperationContext.State {
    /// The first call to make; nil if there is none, or another thread makes it.
    fileprivate mutating func begin() -> (OperationContext.Target, RequestPriority)? {
        guard !isForwarding else { return nil }
        isForwarding = true
        return next()
    }

    /// The next call to make; nil ends the forwarding.
    fileprivate mutating func next() -> (OperationContext.Target, RequestPriority)? {
        let isCurrent = forwarded.map { $0 == (priority, generation) } ?? false
        guard let target, !isCurrent else {
            isForwarding = false
            return nil
        }
        forwarded = (priority, generation)
        return (target, priority)
    }
}
