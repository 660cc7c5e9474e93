import NIOCore

/// One exchange of a connection, for use from outside its event loop.
///
/// Calls after the end of the exchange fail and do not affect later exchanges.
struct ConnectionReference: Sendable {
    let handler: NIOLoopBound<ConnectionHandler>
    let eventLoop: any EventLoop
    /// The number of the exchange.
    let number: UInt64

    /// Runs `body` on the event loop and waits for its future.
    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (ConnectionHandler) -> EventLoopFuture<Value>
    ) async throws -> Value {
        let future = eventLoop.flatSubmit {
            [handler, eventLoop, number] () -> EventLoopFuture<Value> in
            let connection = handler.value
            guard connection.currentNumber == number else {
                return eventLoop.makeFailedFuture(ConnectionFailure.closed)
            }
            return body(connection)
        }
        return try await future.get()
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
