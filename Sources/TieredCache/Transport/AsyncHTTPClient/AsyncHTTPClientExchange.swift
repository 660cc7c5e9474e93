#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// One request under way: takes what its connection delivers and hands it to who pulls.
///
/// Decides under the lock (``ExchangeState``), acts after it. The connection reads on when the
/// buffer has room; so what waits here is bounded by ``ExchangeState/readAhead`` and one read,
/// unless the peer has closed: then by what the kernel had received.
final class AsyncHTTPClientExchange: HTTPClientResponseDelegate {
    typealias Response = Void
    typealias HeadResult = Result<HTTPResponse, TransportError>
    typealias PartResult = Result<ByteBuffer?, TransportError>

    /// Told of interim responses, on the connection's event loop.
    let onInterim: (@Sendable (HTTPResponse) -> Void)?
    private let state = Guarded(ExchangeState())

    init(onInterim: (@Sendable (HTTPResponse) -> Void)? = nil) {
        self.onInterim = onInterim
    }

    /// The address of this machine that the connection uses; nil before there is one.
    var localAddress: String? { state.withLock { $0.localAddress } }

    /// Gives the exchange its means to cancel the request; runs it at once if that came first.
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
        // The usual case: bytes are there, and no continuation is made.
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

    /// Whether a part waits, or the end.
    var isNextAtHand: Bool { state.withLock { $0.isNextAtHand } }

    /// Closes the exchange; any thread, any number of times.
    func cancel() {
        let action = state.withLock { $0.cancel() }
        action.perform()
        action.cancelRequest?()
    }

    // MARK: What the connection calls, on its event loop

    func didConnect(from localAddress: String?) {
        state.withLock { $0.localAddress = localAddress }
    }

    /// Takes the final head.
    func didReceive(_ head: HTTPResponse) {
        state.withLock { $0.didReceiveHead(head) }
    }

    /// Takes note that all of one read was handed over.
    func didCompleteRead() {
        state.withLock { $0.didCompleteRead() }.perform()
    }

    /// Takes note that the body is complete.
    func didReceiveEnd() {
        state.withLock { $0.didEnd(nil) }.perform()
    }

    /// Takes bytes of the body, asked for or not.
    func didReceive(_ part: ByteBuffer) {
        guard part.readableBytes > 0 else { return }
        state.withLock { $0.didReceivePart(part) }
    }

    /// Whether the connection had better not read on.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Has `resumeReading` called once there is room, from any thread.
    ///
    /// - Returns: false where there is room by now: it is not called then.
    func hold(_ resumeReading: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { $0.hold(resumeReading) }
    }

    // MARK: What the library calls, on its event loop

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        didReceiveEnd()
    }

    func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
        state.withLock { $0.didFail(error) }.perform()
    }
}

extension HTTPResponse {
    init(_ head: HTTPResponseHead) {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            // The parser lets no other name pass; one that HTTPTypes refuses is no field.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        self.init(
            status: .init(
                code: min(999, Int(head.status.code)),
                reasonPhrase: head.status.reasonPhrase
            ),
            headerFields: fields
        )
    }
}
#endif
