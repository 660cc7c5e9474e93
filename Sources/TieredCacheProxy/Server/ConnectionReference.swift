import NIOCore

/// One exchange of a connection, from outside its event loop.
///
/// What it does once the exchange is over fails, and touches no later exchange.
struct ConnectionReference: Sendable {
    let handler: NIOLoopBound<ConnectionHandler>
    let eventLoop: any EventLoop
    /// Which of the connection's exchanges is meant.
    let number: UInt64

    /// Runs `body` on the event loop and waits for what it returns.
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
    /// It has left, or the answer has been cut.
    case closed
    /// It did not send what it had announced in time.
    case tooSlow
    /// The answer was not begun, was begun twice, or is longer than announced: our own mistake.
    case misuse
}
