package import HTTPTypes
package import Logging
package import NIOCore
package import NIOHTTP1
package import SystemPackage
package import TieredCache

/// A request of a client with its whole body, which the limits of the server bound.
package struct MessageRequest: Sendable {
    /// The method.
    package let method: HTTPRequest.Method?
    /// The request target.
    package let target: String
    /// The fields.
    package let fields: HTTPFields
    /// The body.
    package let body: ByteBuffer
}

/// A whole response.
package struct MessageResponse: Sendable {
    package var status: Int
    package var fields: HTTPFields
    package var body: ByteBuffer

    package init(status: Int, fields: HTTPFields = [:], body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// Answers the messages of a ``MessageServer``.
package protocol MessageHandler: Sendable {
    /// What the connection becomes instead of getting a response; called on the event loop.
    func upgrade(for head: HTTPRequestHead) -> ConnectionUpgrade?
    /// Answers a request; cancelled when the client disconnects.
    func answer(_ request: MessageRequest) async -> MessageResponse
}

/// A server of small messages, for programs of this package beside the proxies: their guard, limits
/// and gate, with bodies in memory.
package final class MessageServer: Sendable {
    /// Where it listens.
    package enum Place: Sendable {
        /// A port of 127.0.0.1; 0 lets the system choose.
        case port(Int)
        /// A socket for processes of this user alone, and threads that may wait for the file system.
        case socket(FilePath, on: IOExecutor)
        /// A descriptor at which the system listens, and whether it is a socket of the file system.
        case descriptor(CInt, isSocket: Bool)
    }

    private let server: HTTPServer

    /// The port; 0 at a socket.
    package var port: Int { server.port }
    /// The number of open connections.
    package var connections: Int { server.connections.count }
    /// The number of connections that there ever were.
    package var total: Int { server.connections.total }

    private init(_ server: HTTPServer) {
        self.server = server
    }

    /// Starts to listen.
    ///
    /// - Throws: the error of the system.
    package static func start(
        at place: Place,
        handler: any MessageHandler,
        limits: ServerLimits,
        maximumConnections: Int,
        logger: Logger
    ) async throws -> MessageServer {
        let listened: HTTPServer.Place =
            switch place {
            case .port(let port): .port(port)
            case .socket(let path, let threads): .socket(path, on: threads)
            case .descriptor(let descriptor, let isSocket):
                .descriptor(descriptor, isSocket: isSocket)
            }
        return MessageServer(
            try await HTTPServer.start(
                at: listened,
                responder: MessageResponder(handler: handler),
                limits: limits,
                maximumConnections: maximumConnections,
                logger: logger
            )
        )
    }

    /// Stops listening and closes all connections.
    package func stop() async { await server.stop() }
}

private struct MessageResponder: Responder {
    let handler: any MessageHandler

    func upgrade(for request: ServerRequest) -> ConnectionUpgrade? {
        handler.upgrade(for: request.head)
    }

    func respond(
        to request: ServerRequest,
        body: RequestBody,
        with writer: ResponseWriter
    ) async {
        do {
            var bytes = ByteBuffer()
            while var part = try await body.next() { bytes.writeBuffer(&part) }
            let answer = await handler.answer(
                MessageRequest(
                    method: request.method,
                    target: request.target,
                    fields: request.fields,
                    body: bytes
                )
            )
            let head = ResponseHead(
                status: answer.status,
                fields: answer.fields,
                framing: .length(Int64(answer.body.readableBytes))
            )
            try await writer.send(WholeResponse(head: head, body: answer.body))
        } catch {
            // The client has left, or was too slow: the connection is cut.
        }
    }
}
