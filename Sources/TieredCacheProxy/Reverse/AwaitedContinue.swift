import TieredCache

/// Delays a body until the origin requests it (`Expect: 100-continue`, RFC 9110 §10.1.1).
///
/// An origin that does not support the expectation sends nothing; then the body is sent after a
/// timeout.
final class AwaitedContinue: Sendable {
    private let opened: AsyncStream<Never>
    private let opening: AsyncStream<Never>.Continuation
    private let patience: Duration

    init(patience: Duration) {
        self.patience = patience
        (opened, opening) = AsyncStream.makeStream(of: Never.self)
    }

    /// Called when the origin requests the body.
    func open() { opening.finish() }

    /// Waits until the origin requests the body, or until the timeout.
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
