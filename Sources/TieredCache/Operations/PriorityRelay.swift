/// Hands the latest priority to the current target, in order, without calling it under a lock.
///
/// Two threads that set a priority at the same time must not leave the target with the older one:
/// only one thread relays at a time, and it continues until the latest has been handed over.
final class PriorityRelay: Sendable {
    typealias Target = @Sendable (RequestPriority) -> Void

    fileprivate struct State {
        var priority: RequestPriority
        var target: Target?
        /// Distinguishes targets, so that a new one always gets the priority.
        var generation = 0
        var relayed: (priority: RequestPriority, generation: Int)?
        var isRelaying = false
    }

    private let state: Guarded<State>

    init(_ priority: RequestPriority) {
        state = Guarded(State(priority: priority))
    }

    var priority: RequestPriority {
        get { state.withLock { $0.priority } }
        set { relay { $0.priority = newValue } }
    }

    /// Replaces the target, which gets every change from now on.
    ///
    /// - Parameters:
    ///   - target: the target.
    ///   - known: the priority that it has; the current one is handed over at once if it is another.
    func setTarget(_ target: Target?, knowing known: RequestPriority? = nil) {
        let old = relay { state in
            defer {
                state.target = target
                state.generation += 1
                state.relayed = known.map { ($0, state.generation) }
            }
            return state.target
        }
        // The old target may own much; it is released here, outside the lock.
        withExtendedLifetime(old) {}
    }

    @discardableResult
    private func relay<Result: Sendable>(after change: (inout State) -> Result) -> Result {
        let (result, first) = state.withLock { state in (change(&state), state.begin()) }
        var call = first
        while let (target, priority) = call {
            target(priority)
            call = state.withLock { $0.next() }
        }
        return result
    }
}

extension PriorityRelay.State {
    /// The first call to make; nil if there is none, or another thread makes it.
    fileprivate mutating func begin() -> (PriorityRelay.Target, RequestPriority)? {
        guard !isRelaying else { return nil }
        isRelaying = true
        return next()
    }

    /// The next call to make; nil ends the relaying.
    fileprivate mutating func next() -> (PriorityRelay.Target, RequestPriority)? {
        let isCurrent = relayed.map { $0 == (priority, generation) } ?? false
        guard let target, !isCurrent else {
            isRelaying = false
            return nil
        }
        relayed = (priority, generation)
        return (target, priority)
    }
}
