#if HTTPClient
import HTTPCaching
import HTTPTypes
import SystemPackage

/// Where a connection leads: an origin as requests name it, or a socket of this machine.
struct ConnectionPeer: Hashable, Sendable {
    /// What a new connection has to reach.
    enum Address: Hashable, Sendable {
        case host(String, port: Int)
        case socket(path: String)
    }

    private let scheme: String
    /// `host[:port]`, which also is the `Host` field of a request that has none (RFC 9112 §3.2).
    let authority: String
    /// Kept, since its path may lead through a descriptor that it owns.
    private let socket: OwnerSocket?

    /// - Throws: ``TransportError/Kind/invalidRequest`` if the head names no scheme or authority.
    init(_ head: HTTPRequest, socket: OwnerSocket?) throws(TransportError) {
        self.socket = socket
        guard socket == nil else {
            (scheme, authority) = ("http", "localhost")
            return
        }
        guard let scheme = head.scheme, let authority = head.authority else {
            throw TransportError(.invalidRequest, "the request names no scheme or no authority")
        }
        (self.scheme, self.authority) = (scheme, authority)
    }

    static func == (one: ConnectionPeer, other: ConnectionPeer) -> Bool {
        one.authority == other.authority && one.scheme == other.scheme
            && one.socket?.path == other.socket?.path
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(authority)
        hasher.combine(socket?.path)
    }

    /// The address, and whether the connection is one of TLS; only a new connection needs them.
    ///
    /// - Throws: ``TransportError/Kind/invalidRequest`` if the authority is not `host[:port]`,
    ///   without userinfo: the Authorization field carries credentials.
    func resolve() throws(TransportError) -> (address: Address, isSecure: Bool) {
        if let socket { return (.socket(path: socket.path.string), false) }
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
            throw TransportError(.invalidRequest, "the authority is not host[:port]")
        }
        do {
            let origin = try TargetURI("\(scheme)://\(authority)/").origin
            return (.host(origin.hostWithoutBrackets, port: origin.port), origin.scheme == .https)
        } catch {
            throw TransportError(.invalidRequest, "\(error)")
        }
    }
}

extension TargetURI.Origin {
    /// The host as resolvers know it: an IPv6 address without its brackets.
    fileprivate var hostWithoutBrackets: String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }
}
#endif
