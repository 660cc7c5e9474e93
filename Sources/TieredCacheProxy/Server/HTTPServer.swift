import CLinuxCalls
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// An HTTP/1.1 server on 127.0.0.1, or at a socket of the file system.
final class HTTPServer: Sendable {
    /// Where a server listens.
    enum Place: Sendable {
        /// A port of 127.0.0.1; 0 lets the system choose.
        case port(Int)
        /// A socket that processes of this user alone may use, threads that may wait for the file
        /// system, and whether it is still wanted when one has the time; takes the place of a
        /// socket that is there.
        case socket(FilePath, on: IOExecutor, if: @Sendable () -> Bool = { true })
        /// A descriptor at which the system listens already, and whether it is a socket of the file
        /// system. It is the service manager's, too, and goes on listening for that.
        case descriptor(CInt, isSocket: Bool)

        fileprivate var isSocket: Bool {
            switch self {
            case .port: false
            case .socket: true
            case .descriptor(_, let isSocket): isSocket
            }
        }
    }

    /// How many connections wait while the gate pauses; the kernel allows net.core.somaxconn at most.
    private static let backlog: Int32 = 1024

    private let listener: any Channel
    /// What `listener` listens at, where that has a name of its own.
    private let named: OwnerListener?
    /// Whether no other process listens there, but for children of a fork.
    private let isOwn: Bool
    let connections: ConnectionRegistry
    private let limits: ServerLimits

    /// The port of the listener; 0 at a socket.
    let port: Int

    private init(
        listener: any Channel,
        named: OwnerListener?,
        isOwn: Bool,
        connections: ConnectionRegistry,
        limits: ServerLimits
    ) {
        self.listener = listener
        self.named = named
        self.isOwn = isOwn
        self.connections = connections
        self.limits = limits
        port = listener.localAddress?.port ?? 0
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - place: where.
    ///   - responder: answers the requests.
    ///   - limits: the limits for requests and connections.
    ///   - maximumConnections: the most connections, further clients wait; nil for as many as there
    ///     are descriptors in addition to six downloads.
    ///   - logger: the logger for failures.
    ///   - group: the event loops of the server.
    /// - Returns: the server.
    /// - Throws: the error of the system, for example when the port is in use; a given descriptor is
    ///   closed then.
    static func start(
        at place: Place,
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
        var bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
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
                    if place.isSocket {
                        try channel.requireOwnUser()
                    } else {
                        channel.limitUnsent()
                    }
                    connections.enter(channel)
                    try channel.pipeline.syncOperations.addRequestHandlers(server)
                }
            }
        let listener: any Channel
        var named: OwnerListener?
        var isOwn = true
        switch place {
        case .port(let port):
            bootstrap =
                bootstrap
                // Connections of the last run in TIME_WAIT would keep the port for a minute.
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                // Nagle's algorithm would hold back the end of a response until its beginning is
                // acknowledged.
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            listener = try await bootstrap.bind(host: "127.0.0.1", port: port).get()
        case .socket(let path, let threads, let isWanted):
            let name = try await OwnerListener.listen(
                at: path,
                backlog: backlog,
                on: threads,
                if: isWanted
            )
            do {
                listener = try await bootstrap.listen(at: name.descriptor)
            } catch {
                await name.removeName()
                throw error
            }
            named = name
        case .descriptor(let descriptor, _):
            listener = try await bootstrap.listen(at: descriptor)
            isOwn = false
        }
        return HTTPServer(
            listener: listener,
            named: named,
            isOwn: isOwn,
            connections: connections,
            limits: limits
        )
    }

    /// Stops listening, gives responses in progress ``ServerLimits/stopTimeout``, closes all
    /// connections.
    func stop() async {
        await named?.removeName()
        do {
            let (listener, isOwn) = (listener, isOwn)
            try await listener.eventLoop.flatSubmit {
                if isOwn { listener.endListening() }
                return listener.close()
            }.get()
        } catch {
            // The listener is already closed.
        }
        await connections.stop(within: limits.stopTimeout)
    }
}

extension ServerBootstrap {
    /// Listens at a descriptor that listens, and takes it over.
    ///
    /// SwiftNIO leaves one open of which it can make no channel, and then closes each. Of one that
    /// listens it always can.
    ///
    /// - Throws: the error of the system; the descriptor is closed then.
    fileprivate func listen(at descriptor: CInt) async throws -> any Channel {
        var (isListening, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
        let result = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size)
        guard result == 0, isListening != 0 else {
            let error = result == 0 ? Errno.invalidArgument : Errno(rawValue: errno)
            close(descriptor)
            throw error
        }
        return try await withBoundSocket(descriptor).get()
    }
}

extension Channel {
    /// Ends listening in all processes: a close leaves the port to a child that a fork has made
    /// meanwhile, which has the descriptor too.
    fileprivate func endListening() {
        do {
            try pipeline.syncOperations
                .withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    // Where a system refuses it, the close is what there is.
                    _ = shutdown($0, CInt(SHUT_RDWR))
                }
        } catch {
            // The listener is already closed.
        }
    }

    /// The most unsent bytes in a socket, beyond the client's receive window (`TCP_NOTSENT_LOWAT`).
    ///
    /// Without it the kernel buffers megabytes and sends them when an acknowledgement arrives, on
    /// the busy core of a client on the same machine. A hit of 1 MiB took 1.0 to 1.1 of nginx's
    /// time then, 0.94 with 128 KiB, 0.7 with 64 KiB, and 0.5 with 4, 16 and 32 KiB; shorter
    /// responses take as long as before. A paused player leaves no more in the kernel than its own
    /// receive window.
    private static var unsentMark: Int32 { 16 << 10 }

    fileprivate func limitUnsent() {
        do {
            try syncOptions?.setOption(.tcpOption(.unsentMark), value: .init(Self.unsentMark))
        } catch {
            // Without the option responses are only slower.
        }
    }

    /// - Throws: `EACCES` if the client is a process of another user.
    fileprivate func requireOwnUser() throws {
        let isOwn = try pipeline.syncOperations
            .withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                tc_peer_is_own_user($0)
            }
        guard isOwn == true else {
            throw IOError(errnoCode: EACCES, reason: "the client is another user's")
        }
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
