import TieredCache

/// The rules for hosts that a proxy follows, which may be replaced while it runs.
final class CurrentRules: Sendable {
    /// Rules, with the hits that were prepared under them.
    struct Value: Sendable {
        let rules: HostRules
        let hits = ResponseHeadCache()
    }

    private let current: Guarded<Value>

    init(_ rules: HostRules) {
        current = Guarded(Value(rules: rules))
    }

    /// The present ones.
    var value: Value { current.withLock { $0 } }

    /// Replaces the rules; hits that were prepared under other rules are dropped.
    func replace(with rules: HostRules) {
        let replaced = current.withLock { value -> Value? in
            guard value.rules != rules else { return nil }
            let before = value
            value = Value(rules: rules)
            return before
        }
        withExtendedLifetime(replaced) {}  // Releases many objects outside the lock.
    }
}
