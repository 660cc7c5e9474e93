#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// One request under way: takes what the library delivers and hands it to who pulls.
///
/// Decides under the lock (``ExchangeState``), acts after it. The library is told to go on when
/// the buffer has room; so what waits here is bounded by ``ExchangeState/readAhead`` and one read.
final class AsyncHTTPClientExchange: HTTPClientResponseDelegate {
    typealias Response = Void
    typealias HeadResult = Result<HTTPResponse, TransportError>
    typealias PartResult = Result<ByteBuffer?, TransportError>

    private let state = Guarded(ExchangeState())

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
        if !Task.isCancelled, let (result, demand) = state.withLock({ $0.takePart() }) {
            demand?.succeed()
            return try result.get()
        }
        let result: PartResult = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early = state.withLock { $0.waitForPart(continuation) }
                guard let (result, demand) = early else { return }
                demand?.succeed()
                continuation.resume(returning: result)
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Closes the exchange; any thread, any number of times.
    func cancel() {
        let action = state.withLock { $0.cancel() }
        action.perform()
        action.cancelRequest?()
    }

    // MARK: What the library calls, on its event loop

    func didReceiveHead(
        task: HTTPClient.Task<Void>,
        _ head: HTTPResponseHead
    ) -> EventLoopFuture<Void> {
        let waiter = state.withLock { $0.didReceiveHead(HTTPResponse(head)) }
        waiter.resume()
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(
        task: HTTPClient.Task<Void>,
        _ buffer: ByteBuffer
    ) -> EventLoopFuture<Void> {
        guard buffer.readableBytes > 0 else { return task.eventLoop.makeSucceededVoidFuture() }
        let demand = task.eventLoop.makePromise(of: Void.self)
        let action = state.withLock { $0.didReceivePart(buffer, demand: demand) }
        action.perform()
        return demand.futureResult
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) throws {
        state.withLock { $0.didEnd(nil) }.perform()
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
