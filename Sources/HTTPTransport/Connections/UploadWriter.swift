import NIOCore

/// Sends streamed content: asks for the next bytes once the connection has taken the last ones.
///
/// Ends with the exchange: the next write fails then.
struct UploadWriter: Sendable {
    let handler: NIOLoopBound<ConnectionHandler>
    let exchange: ConnectionHandler.ExchangeNumber
    /// The number of bytes; nil if unknown.
    let length: Int64?
    let next: @Sendable () async throws -> ByteBuffer?

    func run(on eventLoop: any EventLoop) {
        eventLoop.makeFutureWithTask { try await send(on: eventLoop) }
            .whenFailure { handler.value.failRequest(of: exchange, with: $0) }
    }

    private func send(on eventLoop: any EventLoop) async throws {
        var missing = length
        while let bytes = try await next() {
            missing = missing.map { $0 - Int64(bytes.readableBytes) }
            guard missing ?? 0 >= 0 else { throw UploadLengthError() }
            guard bytes.readableBytes > 0 else { continue }
            do {
                try await write(bytes, isLast: missing == 0, on: eventLoop)
            } catch {
                // The connection knows better why it has closed, and may have the response.
                return
            }
            if missing == 0 { return }
        }
        guard missing ?? 0 == 0 else { throw UploadLengthError() }
        eventLoop.execute { handler.value.endRequest(of: exchange) }
    }

    private func write(
        _ bytes: ByteBuffer,
        isLast: Bool,
        on eventLoop: any EventLoop
    ) async throws {
        let promise = eventLoop.makePromise(of: Void.self)
        eventLoop.execute {
            handler.value.write(bytes, isLast: isLast, of: exchange, promise: promise)
        }
        try await promise.futureResult.get()
    }
}

/// A streamed request body has another length than it was said to have.
struct UploadLengthError: Error, CustomStringConvertible {
    var description: String { "the request's content has another length than announced" }
}
