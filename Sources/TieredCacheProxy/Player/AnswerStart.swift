import TieredCache

/// Whether the body of an answer is on its way to the client.
final class AnswerStart: Sendable {
    private let state = Guarded(false)

    /// Whether it is.
    var hasBegun: Bool { state.withLock { $0 } }

    /// Notes that it is.
    func begin() { state.withLock { $0 = true } }
}
