#if HTTPClient
import NIOCore
import NIOPosix
import Synchronization

/// A server on loopback for any number of hosts, that sends its responses in the steps of a test.
///
/// The body of each is the authority that was asked for. Its first byte, of the head, comes at
/// once; all others when the test sends them.
struct SlowOrigin: Sendable {
    /// A connection that has asked.
    private struct Client: Sendable {
        let channel: any Channel
        let response: [UInt8]
    }

    /// What the connections tell the test.
    private final class Clients: Sendable {
        let asked = AsyncThrowingStream<Void, any Error>.makeStream()
        let closed = AsyncStream<Void>.makeStream()
        private let clients = Mutex<[Client]>([])

        /// Those that have asked, in their order.
        var all: [Client] { clients.withLock { $0 } }

        func add(_ client: Client) {
            clients.withLock { $0.append(client) }
            asked.continuation.yield()
        }
    }

    let port: Int
    private let listener: any Channel
    private let clients: Clients

    /// Serves while a closure runs.
    static func with<Value>(
        _ body: (SlowOrigin) async throws -> Value
    ) async throws -> Value {
        let origin = try await SlowOrigin()
        let result: Result<Value, any Error>
        do {
            result = .success(try await body(origin))
        } catch {
            result = .failure(error)
        }
        try await origin.close()
        return try result.get()
    }

    private init() async throws {
        let clients = Clients()
        self.clients = clients
        listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            // All may connect before one is accepted.
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answering(clients))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        port = listener.localAddress?.port ?? 0
    }

    private func close() async throws {
        try await listener.close()
        for client in clients.all {
            client.channel.close(promise: nil)
            try await client.channel.closeFuture.get()
        }
    }

    /// The length of each response, which is that of its authority and more.
    var length: Int { clients.all.first?.response.count ?? 0 }

    /// Sends these bytes of each response, to one client after the other.
    func send(_ positions: Range<Int>) async throws {
        let writes = clients.all.map { client in
            client.channel.writeAndFlush(ByteBuffer(bytes: client.response[positions]))
        }
        try await EventLoopFuture<Void>.andAllSucceed(writes, on: listener.eventLoop).get()
    }

    /// Waits until so many more have asked.
    ///
    /// - Throws: the error of one that will not.
    func waitForRequests(_ count: Int) async throws {
        var missing = count
        for try await _ in clients.asked.stream {
            missing -= 1
            guard missing > 0 else { return }
        }
    }

    /// Ends the wait for requests: one of them has failed.
    func giveUp(_ error: any Error) {
        clients.asked.continuation.finish(throwing: error)
    }

    /// Waits until so many more connections have closed.
    func waitForCloses(_ count: Int) async {
        var missing = count
        for await _ in clients.closed.stream {
            missing -= 1
            guard missing > 0 else { return }
        }
    }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let clients: Clients
        private var head = ""

        init(_ clients: Clients) {
            self.clients = clients
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            head += String(buffer: unwrapInboundIn(data))
            guard head.hasSuffix("\r\n\r\n") else { return }
            let response = Self.response(to: head)
            head = ""
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: response[..<1])), promise: nil)
            clients.add(Client(channel: context.channel, response: response))
        }

        func channelInactive(context: ChannelHandlerContext) {
            clients.closed.continuation.yield()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // A client that has bytes unread resets its connection.
            context.close(promise: nil)
        }

        private static func response(to head: String) -> [UInt8] {
            let name = "Host: "
            let line = head.split(separator: "\r\n").first { $0.hasPrefix(name) }
            let authority = line.map { String($0.dropFirst(name.count)) } ?? ""
            let length = authority.utf8.count
            return Array("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n\(authority)".utf8)
        }
    }
}
#endif
