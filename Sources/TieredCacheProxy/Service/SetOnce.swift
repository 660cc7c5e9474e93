import TieredCache

/// A value that becomes known only after its users were created, such as the address of a server.
final class SetOnce<Value: Sendable>: Sendable {
    private let stored = Guarded<Value?>(nil)

    /// The value, or nil before it was set.
    var value: Value? { stored.withLock { $0 } }

    /// Sets the value.
    func set(_ value: Value) { stored.withLock { $0 = value } }
}
