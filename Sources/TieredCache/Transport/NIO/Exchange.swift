#if HTTPClient
import HTTPTransport
import HTTPTypes
import NIOCore

/// One running request: buffers the bytes of its connection until a task reads them.
///
/// Between the event loop of the connection and the threads of tasks. Decides under the lock
/// (``ExchangeState``), acts after it. The connection reads on while the buffer has space; so the
/// buffer is bounded by ``ExchangeState/readAhead`` and one read, or, after the peer has closed, by
/// the bytes that the kernel had received.
final class Exchange: ResponseReceiver {
    typealias HeadResult = Result<HTTPResponse, TransportError>
    typealias PartResult = Result<ByteBuffer?, TransportError>

    private let onInterim: (@Sendable (HTTPResponse) -> Void)?
    private let state = Guarded(ExchangeState())

    init(onInterim: (@Sendable (HTTPResponse) -> Void)? = nil) {
        self.onInterim = onInterim
    }

    /// Waits for the head.
    func response() async throws(TransportError) -> TransportResponse {
        let head = try await head()
        let (localAddress, whole) = state.withLock { ($0.localAddress, $0.whole) }
        var response = TransportResponse(
            head: head,
            body: ExchangeBody(self),
            localAddress: localAddress
        )
        response.whole = whole.map { BodyChunk(ByteBufferStorage(buffer: $0)) }
        return response
    }

    private func head() async throws(TransportError) -> HTTPResponse {
        let result: HeadResult = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early = state.withLock { $0.waitForHead(continuation) }
                guard let early else { return }
                continuation.resume(returning: early)
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    func nextPart() async throws(TransportError) -> ByteBuffer? {
        // The usual case: bytes are available, and no continuation is made.
        if !Task.isCancelled, let (result, resumeReading) = state.withLock({ $0.takePart() }) {
            resumeReading?()
            return try result.get()
        }
        let result: PartResult = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early = state.withLock { $0.waitForPart(continuation) }
                guard let (result, resumeReading) = early else { return }
                resumeReading?()
                continuation.resume(returning: result)
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Whether a part or the end is available.
    var isNextAtHand: Bool { state.withLock { $0.isNextAtHand } }

    /// Closes the exchange; may be called from any thread, any number of times.
    func cancel() {
        let action = state.withLock { $0.cancel() }
        action.perform()
        action.cancelRequest?()
    }

    // MARK: Calls of the connection, on its event loop

    func willSend(
        from localAddress: String?,
        cancel: @escaping @Sendable () -> Void
    ) -> Bool {
        // A cancel before the start wins (invariant 11).
        state.withLock { $0.willSend(from: localAddress, cancelRequest: cancel) }
    }

    func didReceiveInterim(_ head: HTTPResponse) {
        onInterim?(head)
    }

    func didReceiveWhole(_ head: HTTPResponse, _ body: ByteBuffer) {
        state.withLock { $0.didReceiveWhole(head, body) }.perform()
    }

    func didReceive(_ head: HTTPResponse) {
        state.withLock { $0.didReceiveHead(head) }
    }

    func didCompleteRead() {
        state.withLock { $0.didCompleteRead() }.perform()
    }

    func didReceiveEnd() {
        state.withLock { $0.didEnd(nil) }.perform()
    }

    func didReceive(_ part: ByteBuffer) {
        state.withLock { $0.didReceivePart(part) }
    }

    var isFull: Bool { state.withLock { $0.isFull } }

    func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { $0.hold(resumeReading) }
    }

    func didFail(_ error: ExchangeError) {
        state.withLock { $0.didEnd(TransportError(error)) }.perform()
    }
}
#endif
