#if HTTPClient
import CLinuxCalls
import HTTPCaching
import NIOCore
import NIOPosix
import NIOSSL
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Opens connections.
///
/// A failed attempt is reported at once.
/// A host with several addresses is tried at all of them, IPv6 first (RFC 8305).
struct Connector: Sendable {
    private let security: ConnectionSecurity
    private let lookups: HostLookups

    init(additionalTrustRoots: [FilePath], lookups: HostLookups) {
        security = ConnectionSecurity(additionalTrustRoots: additionalTrustRoots)
        self.lookups = lookups
    }

    /// Opens a connection that is ready for a request.
    ///
    /// - Parameters:
    ///   - peer: the name under which it is kept.
    ///   - address: the address.
    ///   - isSecure: whether to use TLS.
    ///   - timeout: the time for all of it.
    ///   - eventLoop: carries the connection.
    ///   - pool: registers it.
    /// - Returns: the connection, or why there is none.
    func connect(
        _ peer: ConnectionPeer,
        at address: ConnectionPeer.Address,
        isSecure: Bool,
        within timeout: Duration,
        on eventLoop: any EventLoop,
        for pool: ConnectionPool
    ) -> EventLoopFuture<Connection> {
        let timeout = TimeAmount.nanoseconds(max(1, timeout.saturatedNanoseconds))
        let deadline = NIODeadline.now() + timeout
        let channel =
            isSecure
            ? security.context(on: eventLoop).flatMap { context in
                let name = address.hostName
                return connect(peer, at: address, within: timeout, on: eventLoop, for: pool) {
                    try NIOSSLClientHandler(context: context, serverHostname: name)
                }
            } : connect(peer, at: address, within: timeout, on: eventLoop, for: pool) { nil }
        return channel.flatMap { channel in
            do {
                let handler = try channel.pipeline.syncOperations.handler(
                    type: ConnectionHandler.self
                )
                return handler.open(isSecure: isSecure, until: deadline)
                    ?? channel.eventLoop.makeFailedFuture(ConnectionClosed())
            } catch {
                // It was closed meanwhile.
                return channel.eventLoop.makeFailedFuture(ConnectionClosed())
            }
        }
    }

    private func connect(
        _ peer: ConnectionPeer,
        at address: ConnectionPeer.Address,
        within timeout: TimeAmount,
        on eventLoop: any EventLoop,
        for pool: ConnectionPool,
        security: @escaping @Sendable () throws -> NIOSSLClientHandler?
    ) -> EventLoopFuture<any Channel> {
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelOption(.recvAllocator, value: Self.readBuffers)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Self.prepare(channel, to: peer, for: pool, security: security)
                }
            }
        switch address {
        case .socket(let path):
            return bootstrap.connect(unixDomainSocketPath: path)
        case .host(let name, let port):
            // A literal address needs no lookup.
            guard let literal = SocketAddress.literal(name, port: port) else {
                let host = HostLookups.Host(name: name, port: port)
                let addresses = lookups.addresses(of: host, on: eventLoop)
                return bootstrap.resolver(HostResolver(addresses: addresses))
                    .connect(host: name, port: port)
            }
            return bootstrap.connect(to: literal)
        }
    }

    /// One read takes up to 256 KiB from the socket.
    private static let readBuffers = AdaptiveRecvByteBufferAllocator(
        minimum: 16 << 10,
        initial: 64 << 10,
        maximum: 256 << 10
    )

    private static func prepare(
        _ channel: any Channel,
        to peer: ConnectionPeer,
        for pool: ConnectionPool,
        security: () throws -> NIOSSLClientHandler?
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        // Higher descriptors are reserved for the runtime, which aborts the process without any.
        let isKept = try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            tc_may_keep_socket($0)
        }
        guard isKept != false else {
            throw IOError(errnoCode: EMFILE, reason: "too many open files")
        }
        let handler = ConnectionHandler(peer: peer, pool: pool)
        if let security = try security() { try pipeline.addHandler(security) }
        try pipeline.addHandler(handler)
        guard let connection = handler.connection, pool.didMake(connection) else {
            throw ConnectionClosed()
        }
    }
}

extension ConnectionPeer.Address {
    /// The name that a certificate has to show; nil where it has to show an address (RFC 6066 §3).
    fileprivate var hostName: String? {
        guard case .host(let name, let port) = self,
            SocketAddress.literal(name, port: port) == nil
        else { return nil }
        return name
    }
}

extension SocketAddress {
    /// The address that a literal stands for; nil for a name.
    fileprivate static func literal(_ text: String, port: Int) -> SocketAddress? {
        do {
            return try SocketAddress(ipAddress: text, port: port)
        } catch {
            return nil
        }
    }
}
#endif
