import HTTPCaching
import Logging
import NIOCore

/// What all connections of a server share.
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

    /// A future for a connection that has no event loop any more.
    func failedFuture<Value: Sendable>(_ failure: ConnectionFailure) -> EventLoopFuture<Value> {
        anyLoop.makeFailedFuture(failure)
    }
}

/// Tells a connection that there are too many.
struct MakeRoomEvent: Sendable {
    /// How long a connection may be idle all the same: a client that has just come, or has its
    /// answer, may be about to ask.
    static let patience = TimeAmount.seconds(1)
}

/// Tells a connection that the server is about to stop.
struct ServerStopEvent: Sendable {}
