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

    /// The port that it listens on.
    let port: Int

    private init(_ listener: any Channel, _ connections: ConnectionRegistry, _ limits: ServerLimits)
    {
        self.listener = listener
        self.connections = connections
        self.limits = limits
        port = listener.localAddress?.port ?? 0
    }

    /// Starts to listen on loopback.
    ///
    /// - Parameters:
    ///   - port: 0 for one that the system chooses.
    ///   - responder: what answers.
    ///   - limits: how much and how long a client may ask.
    ///   - maximumConnections: how many clients may be connected, others wait; nil for as many as
    ///     there are descriptors beside six downloads.
    ///   - logger: where failures go.
    ///   - group: whose threads it runs on.
    /// - Returns: the server.
    /// - Throws: what the system says, such as that the port is taken.
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
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptGate(connections, maximum: maximum)
                    )
                }
            }
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
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
                        // A kernel without it does the same more slowly.
                    }
                    connections.enter(channel)
                    try channel.pipeline.syncOperations.addRequestHandlers(server)
                }
            }
        let listener = try await bootstrap.bind(host: "127.0.0.1", port: port).get()
        return HTTPServer(listener, connections, limits)
    }

    /// Bytes beyond what the client has room for, above which its socket takes no more.
    ///
    /// Without it the kernel takes megabytes, and sends them when an acknowledgement comes, on the
    /// core of a client on the same machine, which is the one that is busy. A hit of 1 MiB took 1.0
    /// to 1.1 of nginx's time then, 0.94 with 128 KiB, 0.7 with 64 KiB, and 0.5 with 4, 16 and 32
    /// KiB; what is shorter takes as long as before. A player that pauses leaves nothing in the
    /// kernel but what it has room for itself.
    private static let unsentMark = 16 << 10

    /// Stops: listens no more, gives the answers under way a little time, closes everything.
    func stop() async {
        do {
            try await listener.close().get()
        } catch {
            // It has been closed before, which is what is wanted.
        }
        await connections.stop(within: limits.stopTimeout)
    }
}

extension NIOBSDSocket.Option {
    /// `TCP_NOTSENT_LOWAT`, for which SwiftNIO has no name.
    fileprivate static let unsentMark = NIOBSDSocket.Option(rawValue: TCP_NOTSENT_LOWAT)
}

extension ChannelPipeline.SynchronousOperations {
    /// Guard, parser and connection, in this order.
    fileprivate func addRequestHandlers(_ server: ServerContext) throws {
        let gate = RequestGate(limits: server.limits)
        try addHandler(gate)
        try addHandler(
            ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes))
        )
        try addHandler(ConnectionHandler(server: server, gate: gate))
    }
}
