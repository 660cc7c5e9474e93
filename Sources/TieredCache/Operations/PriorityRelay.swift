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
        set {
            state.withLock { $0.priority = newValue }
            relay()
        }
    }

    /// Replaces the target, which gets the current priority at once, then every change.
    func setTarget(_ target: Target?) {
        let old = state.withLock { state in
            defer {
                state.target = target
                state.generation += 1
            }
            return state.target
        }
        // The old target may own much; it is released here, outside the lock.
        withExtendedLifetime(old) {}
        relay()
    }

    private func relay() {
        guard state.withLock({ $0.begin() }) else { return }
        while let (target, priority) = state.withLock({ $0.next() }) { target(priority) }
    }
}

extension PriorityRelay.State {
    fileprivate mutating func begin() -> Bool {
        guard !isRelaying else { return false }
        isRelaying = true
        return true
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
