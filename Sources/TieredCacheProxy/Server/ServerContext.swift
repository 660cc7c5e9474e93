import HTTPCaching
import Logging
import NIOCore

/// The state that all connections of a server share.
struct ServerContext: Sendable {
    let responder: any Responder
    let limits: ServerLimits
    let logger: Logger
    let date: DateText
    private let anyLoop: any EventLoop

    init(responder: any Responder, limits: ServerLimits, logger: Logger, group: any EventLoopGroup)
    {
        self.responder = responder
        self.limits = limits
        self.logger = logger
        date = DateText()
        anyLoop = group.any()
    }

    /// A failed future, for a connection that no longer has an event loop.
    func failedFuture<Value: Sendable>(_ failure: ConnectionFailure) -> EventLoopFuture<Value> {
        anyLoop.makeFailedFuture(failure)
    }
}

/// Tells a connection that there are too many connections.
struct MakeRoomEvent: Sendable {
    /// How long a connection may be idle nevertheless: a client that has just connected or received
    /// a response may be about to send a request.
    static let patience = TimeAmount.seconds(1)
}

/// Tells a connection that the server is stopping.
package struct ServerStopEvent: Sendable {}
