import TieredCache

/// Whether the body of a response is on its way to the client.
final class BodyStart: Sendable {
    private let state = Guarded(false)

    /// Whether the first byte of the body has been written.
    var hasBegun: Bool { state.withLock { $0 } }

    /// Records that the body has begun.
    func begin() { state.withLock { $0 = true } }
}
