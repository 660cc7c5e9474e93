import NIOCore

/// The wait for the handshake of a new connection; its first end counts.
final class ConnectionOpening {
    private let connection: NIOLoopBound<ConnectionHandler>
    private let promise: EventLoopPromise<NIOLoopBound<ConnectionHandler>>
    private let timer: Scheduled<Void>

    init(
        _ connection: NIOLoopBound<ConnectionHandler>,
        in context: ChannelHandlerContext,
        until deadline: NIODeadline
    ) {
        self.connection = connection
        let channel = context.channel
        let promise = context.eventLoop.makePromise(of: NIOLoopBound<ConnectionHandler>.self)
        self.promise = promise
        timer = context.eventLoop.scheduleTask(deadline: deadline) {
            promise.fail(ConnectionTimeout())
            channel.close(promise: nil)
        }
    }

    var future: EventLoopFuture<NIOLoopBound<ConnectionHandler>> { promise.futureResult }

    func succeed() {
        timer.cancel()
        promise.succeed(connection)
    }

    func fail(_ error: any Error) {
        timer.cancel()
        promise.fail(error)
    }
}

/// The connection was not ready within the connect timeout.
struct ConnectionTimeout: Error, CustomStringConvertible {
    var description: String { "no connection within the connect timeout" }
}
