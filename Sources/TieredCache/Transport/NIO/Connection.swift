#if HTTPClient
import NIOCore

/// A connection as its pool sees it; may be used from any thread.
final class Connection: Sendable {
    let peer: ConnectionPeer
    let eventLoop: any EventLoop
    private let handler: NIOLoopBound<ConnectionHandler>

    init(peer: ConnectionPeer, handler: NIOLoopBound<ConnectionHandler>) {
        self.peer = peer
        self.handler = handler
        eventLoop = handler.eventLoop
    }

    /// Sends a request on the connection's event loop, at once if that is the calling thread.
    func begin(_ request: OutgoingRequest, for exchange: Exchange) {
        onLoop { $0.begin(request, for: exchange) }
    }

    /// Closes the connection; an exchange under way is cancelled.
    func close() {
        onLoop { $0.close() }
    }

    private func onLoop(_ body: @escaping @Sendable (ConnectionHandler) -> Void) {
        guard !eventLoop.inEventLoop else { return body(handler.value) }
        eventLoop.execute { [handler] in body(handler.value) }
    }
}
#endif
