#if HTTPClient
import HTTPTypes
import NIOCore

/// One running request: buffers the bytes of its connection until they are read.
///
/// Decides under the lock (``ExchangeState``), acts after it. The connection reads on while the
/// buffer has space; so the buffer is bounded by ``ExchangeState/readAhead`` and one read, or,
/// after the peer has closed, by the bytes that the kernel had received.
final class Exchange: Sendable {
    typealias HeadResult = Result<HTTPResponse, TransportError>
    typealias PartResult = Result<ByteBuffer?, TransportError>

    /// Called with interim responses, on the connection's event loop.
    let onInterim: (@Sendable (HTTPResponse) -> Void)?
    private let state = Guarded(ExchangeState())

    init(onInterim: (@Sendable (HTTPResponse) -> Void)? = nil) {
        self.onInterim = onInterim
    }

    /// The local address of the connection; nil before it exists.
    var localAddress: String? { state.withLock { $0.localAddress } }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Sets the closure that cancels the request; calls it at once if the exchange is cancelled.
    func didStart(cancelRequest: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { $0.didStart(cancelRequest: cancelRequest) }
        guard isCancelled else { return }
        cancelRequest()
    }

    func head() async throws(TransportError) -> HTTPResponse {
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

    func didConnect(from localAddress: String?) {
        state.withLock { $0.localAddress = localAddress }
    }

    /// Handles the final head.
    func didReceive(_ head: HTTPResponse) {
        state.withLock { $0.didReceiveHead(head) }
    }

    /// Handles the end of one read, all of which was handed over.
    func didCompleteRead() {
        state.withLock { $0.didCompleteRead() }.perform()
    }

    /// Handles the end of the body.
    func didReceiveEnd() {
        state.withLock { $0.didEnd(nil) }.perform()
    }

    /// Buffers bytes of the body, requested or not.
    func didReceive(_ part: ByteBuffer) {
        guard part.readableBytes > 0 else { return }
        state.withLock { $0.didReceivePart(part) }
    }

    /// Whether the connection should pause reading.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Sets a closure that is called once there is space, from any thread.
    ///
    /// - Returns: false if there is space by now: the closure is not called then.
    func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { $0.hold(resumeReading) }
    }

    /// Handles the failure of the connection, or of the attempt to make one.
    func didFail(_ error: any Error) {
        state.withLock { $0.didFail(error) }.perform()
    }
}
#endif
