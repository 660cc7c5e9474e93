import NIOCore
import TieredCache

/// One exchange of a connection, for use by its task and from other threads.
///
/// Calls after the end of the exchange fail and do not affect later exchanges.
struct ConnectionReference: Sendable {
    let handler: NIOLoopBound<ConnectionHandler>
    /// Runs tasks on the connection's event loop.
    let executor: EventLoopExecutor
    /// The number of the exchange.
    let number: UInt64

    private var eventLoop: any EventLoop { executor.eventLoop }

    /// Runs `body` on the event loop and waits for its future.
    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (ConnectionHandler) -> EventLoopFuture<Value>
    ) async throws -> Value {
        let future =
            eventLoop.inEventLoop
            ? performOnLoop(body) : eventLoop.flatSubmit { performOnLoop(body) }
        return try await future.get()
    }

    /// Sends bytes of a file, as many as the socket takes at once.
    ///
    /// - Returns: how many; nil where they have to be copied.
    func send(_ bytes: LeasedBytes) -> Int64? {
        guard eventLoop.inEventLoop else { return nil }
        let connection = handler.value
        return connection.currentNumber == number ? connection.send(bytes) : nil
    }

    /// Runs `body` on the event loop in a later tick; not after the end of the exchange.
    func submit(_ body: @escaping @Sendable (ConnectionHandler) -> Void) {
        eventLoop.execute { [handler, number] in
            let connection = handler.value
            if connection.currentNumber == number { body(connection) }
        }
    }

    /// Returns when all that was submitted before has run.
    func passSubmitted() async throws {
        try await eventLoop.submit {}.get()
    }

    private func performOnLoop<Value: Sendable>(
        _ body: @Sendable (ConnectionHandler) -> EventLoopFuture<Value>
    ) -> EventLoopFuture<Value> {
        let connection = handler.value
        guard connection.currentNumber == number else {
            return eventLoop.makeFailedFuture(ConnectionFailure.closed)
        }
        return body(connection)
    }
}

/// Why a client cannot be read from or written to.
enum ConnectionFailure: Error {
    /// The client has disconnected, or the response was cut off.
    case closed
    /// The client did not send the announced body in time.
    case tooSlow
    /// The response was not begun, was begun twice, or is longer than announced: a programming
    /// error.
    case misuse
}
