import HTTPCaching
package import HTTPTypes

/// Where a connection leads: an origin as requests name it, or a socket of this machine.
package struct ConnectionPeer: Hashable, Sendable {
    /// What a new connection has to reach.
    enum Address: Hashable, Sendable {
        case host(HostName)
        case socket(path: String)
    }

    private let scheme: String
    /// `host[:port]`, which also is the `Host` field of a request that has none (RFC 9112 §3.2).
    let authority: String
    private let socketPath: String?
    /// What the path of the socket needs, such as a descriptor that it leads through.
    private let socketOwner: (any AnyObject & Sendable)?

    /// The origin of a request.
    ///
    /// - Throws: ``ExchangeError/Kind/invalidRequest`` if the head names no scheme or authority.
    package init(_ head: HTTPRequest) throws(ExchangeError) {
        guard let scheme = head.scheme, let authority = head.authority else {
            throw ExchangeError(.invalidRequest, "the request names no scheme or no authority")
        }
        (self.scheme, self.authority, socketPath, socketOwner) = (scheme, authority, nil, nil)
    }

    /// A socket of this machine.
    ///
    /// - Parameters:
    ///   - path: its path.
    ///   - owner: kept as long as the peer is.
    package init(socket path: String, keeping owner: any AnyObject & Sendable) {
        (scheme, authority, socketPath, socketOwner) = ("http", "localhost", path, owner)
    }

    package static func == (one: ConnectionPeer, other: ConnectionPeer) -> Bool {
        one.authority == other.authority && one.scheme == other.scheme
            && one.socketPath == other.socketPath
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(scheme)
        hasher.combine(authority)
        hasher.combine(socketPath)
    }

    /// The address, and whether the connection is one of TLS; only a new connection needs them.
    ///
    /// - Throws: ``ExchangeError/Kind/invalidRequest`` if the authority is not `host[:port]`,
    ///   without userinfo: the Authorization field carries credentials.
    func resolve() throws(ExchangeError) -> (address: Address, isSecure: Bool) {
        if let socketPath { return (.socket(path: socketPath), false) }
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
            throw ExchangeError(.invalidRequest, "the authority is not host[:port]")
        }
        do {
            let origin = try TargetURI("\(scheme)://\(authority)/").origin
            let host = HostName(name: origin.hostWithoutBrackets, port: origin.port)
            return (.host(host), origin.scheme == .https)
        } catch {
            throw ExchangeError(.invalidRequest, "\(error)")
        }
    }
}

extension TargetURI.Origin {
    /// The host as resolvers know it: an IPv6 address without its brackets.
    fileprivate var hostWithoutBrackets: String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }
}
