import TieredCache

/// Holds a body back until the origin asks for it (`Expect: 100-continue`, RFC 9110 §10.1.1).
///
/// An origin that knows nothing of the expectation says nothing; then the body goes after a while.
final class AwaitedContinue: Sendable {
    private let opened: AsyncStream<Never>
    private let opening: AsyncStream<Never>.Continuation
    private let patience: Duration

    init(patience: Duration) {
        self.patience = patience
        (opened, opening) = AsyncStream.makeStream(of: Never.self)
    }

    /// The origin wants the body.
    func open() { opening.finish() }

    /// Waits until the origin wants the body, or has had time enough to say that it does not.
    func wait() async throws {
        let timer = Task { [opening, patience] in
            try await Task.sleep(for: patience)
            opening.finish()
        }
        defer { timer.cancel() }
        for await _ in opened {}
        try Task.checkCancellation()
    }
}
