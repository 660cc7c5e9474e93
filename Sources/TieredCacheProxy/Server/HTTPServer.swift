import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// An HTTP/1.1 server on 127.0.0.1.
final class HTTPServer: Sendable {
    private let listener: any Channel
    let connections: ConnectionRegistry
    private let limits: ServerLimits

    /// The port of the listener.
    let port: Int

    private init(listener: any Channel, connections: ConnectionRegistry, limits: ServerLimits) {
        self.listener = listener
        self.connections = connections
        self.limits = limits
        port = listener.localAddress?.port ?? 0
    }

    /// Starts to listen on loopback.
    ///
    /// - Parameters:
    ///   - port: the port; 0 lets the system choose.
    ///   - responder: answers the requests.
    ///   - limits: the limits for requests and connections.
    ///   - maximumConnections: the most connections, further clients wait; nil for as many as there
    ///     are descriptors in addition to six downloads.
    ///   - logger: the logger for failures.
    ///   - group: the event loops of the server.
    /// - Returns: the server.
    /// - Throws: the error of the system, for example when the port is in use.
    static func start(
        port: Int,
        responder: any Responder,
        limits: ServerLimits,
        maximumConnections: Int? = nil,
        logger: Logger,
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    ) async throws -> HTTPServer {
        let connections = ConnectionRegistry()
        let server = ServerContext(
            responder: responder,
            limits: limits,
            logger: logger,
            group: group
        )
        let maximum =
            maximumConnections ?? DescriptorBudget(downloads: 6)?.maximumConnections ?? .max
        let bootstrap = ServerBootstrap(group: group)
            // Those that wait while the gate pauses; the kernel allows net.core.somaxconn at most.
            .serverChannelOption(.backlog, value: 1024)
            // Connections of the last run in TIME_WAIT would keep the port for a minute.
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptGate(connections, maximum: maximum)
                    )
                }
            }
            .childChannelOption(.autoRead, value: false)
            // A client may close its side behind its request and read the response.
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // Nagle's algorithm would hold back the end of a response until its beginning is
            // acknowledged.
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 2048,
                    initial: 2048,
                    maximum: 64 << 10
                )
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    do {
                        try channel.syncOptions?.setOption(
                            .tcpOption(.unsentMark),
                            value: .init(unsentMark)
                        )
                    } catch {
                        // Without the option responses are only slower.
                    }
                    connections.enter(channel)
                    try channel.pipeline.syncOperations.addRequestHandlers(server)
                }
            }
        let listener = try await bootstrap.bind(host: "127.0.0.1", port: port).get()
        return HTTPServer(listener: listener, connections: connections, limits: limits)
    }

    /// The most unsent bytes in a socket, beyond the client's receive window (`TCP_NOTSENT_LOWAT`).
    ///
    /// Without it the kernel buffers megabytes and sends them when an acknowledgement arrives, on
    /// the busy core of a client on the same machine. A hit of 1 MiB took 1.0 to 1.1 of nginx's
    /// time then, 0.94 with 128 KiB, 0.7 with 64 KiB, and 0.5 with 4, 16 and 32 KiB; shorter
    /// responses take as long as before. A paused player leaves no more in the kernel than its own
    /// receive window.
    private static let unsentMark = 16 << 10

    /// Stops listening, gives responses in progress ``ServerLimits/stopTimeout``, closes all
    /// connections.
    func stop() async {
        do {
            try await listener.close().get()
        } catch {
            // The listener is already closed.
        }
        await connections.stop(within: limits.stopTimeout)
    }
}

extension NIOBSDSocket.Option {
    /// `TCP_NOTSENT_LOWAT`, which SwiftNIO does not name.
    fileprivate static let unsentMark = NIOBSDSocket.Option(rawValue: TCP_NOTSENT_LOWAT)
}

extension ChannelPipeline.SynchronousOperations {
    /// Adds the gate, the parser and the connection handler, in this order.
    fileprivate func addRequestHandlers(_ server: ServerContext) throws {
        let gate = RequestGate(limits: server.limits)
        try addHandler(gate)
        try addHandler(
            ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes))
        )
        try addHandler(ConnectionHandler(server: server, gate: gate))
    }
}
