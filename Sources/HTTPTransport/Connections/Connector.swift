import HTTPCaching
import NIOCore
import NIOPosix
import NIOSSL

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
    let services: ProcessServices
    let security: ConnectionSecurity

    /// Opens a connection that is ready for a request; called on its event loop.
    ///
    /// - Parameters:
    ///   - peer: where it leads.
    ///   - timeout: the time for all of it.
    ///   - eventLoop: carries the connection.
    ///   - pool: registers it.
    /// - Returns: the connection, or why there is none.
    /// - Throws: ``ExchangeError/Kind/invalidRequest`` if the peer has no address.
    func connect(
        _ peer: ConnectionPeer,
        within timeout: Duration,
        on eventLoop: any EventLoop,
        for pool: ConnectionPool
    ) throws(ExchangeError) -> EventLoopFuture<NIOLoopBound<ConnectionHandler>> {
        let (address, isSecure) = try peer.resolve()
        let timeout = TimeAmount.nanoseconds(max(1, timeout.saturatedNanoseconds))
        let deadline = NIODeadline.now() + timeout
        let pool = NIOLoopBound(pool, eventLoop: eventLoop)
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
        for pool: NIOLoopBound<ConnectionPool>,
        security: @escaping @Sendable () throws -> NIOSSLClientHandler?
    ) -> EventLoopFuture<any Channel> {
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelOption(.recvAllocator, value: Self.readBuffers)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try prepare(channel, to: peer, for: pool.value, security: security)
                }
            }
        switch address {
        case .socket(let path):
            return bootstrap.connect(unixDomainSocketPath: path)
        case .host(let host):
            // A literal address needs no lookup.
            guard let literal = SocketAddress.literal(host) else {
                let addresses = services.addresses(host, eventLoop)
                return bootstrap.resolver(HostResolver(addresses: addresses))
                    .connect(host: host.name, port: host.port)
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

    private func prepare(
        _ channel: any Channel,
        to peer: ConnectionPeer,
        for pool: ConnectionPool,
        security: () throws -> NIOSSLClientHandler?
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        let isKept = try pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            services.mayKeep($0)
        }
        guard isKept != false else {
            throw IOError(errnoCode: EMFILE, reason: "too many open files")
        }
        let handler = ConnectionHandler(peer: peer, pool: pool)
        if let security = try security() { try pipeline.addHandler(security) }
        try pipeline.addHandler(handler)
        guard pool.didMake(handler) else { throw ConnectionClosed() }
    }
}

/// One lookup as SwiftNIO wants it, IPv6 and IPv4 apart.
private struct HostResolver: Resolver, Sendable {
    let addresses: EventLoopFuture<[SocketAddress]>

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(.inet)
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        addresses(.inet6)
    }

    private func addresses(
        _ family: NIOBSDSocket.ProtocolFamily
    ) -> EventLoopFuture<[SocketAddress]> {
        addresses.map { addresses in addresses.filter { $0.protocol == family } }
    }

    func cancelQueries() {}
}

extension ConnectionPeer.Address {
    /// The name that a certificate has to show; nil where it has to show an address (RFC 6066 §3).
    fileprivate var hostName: String? {
        guard case .host(let host) = self, SocketAddress.literal(host) == nil else { return nil }
        return host.name
    }
}

extension SocketAddress {
    /// The address that a literal stands for; nil for a name.
    fileprivate static func literal(_ host: HostName) -> SocketAddress? {
        do {
            return try SocketAddress(ipAddress: host.name, port: host.port)
        } catch {
            return nil
        }
    }
}
