/// The target of a request: an `http` or `https` URI without fragment (RFC 9110 §4.2, §7.1).
///
/// The text is kept as given, because a cache that rewrites URIs may confuse resources that the
/// origin distinguishes: existing escapes stay (`%2F` is not `/`), dot segments stay. Only
/// equivalences of RFC 9110 §4.2.3 are normalised: scheme and host in lower case, the default port
/// dropped, an empty path written as `/`. Characters outside ASCII in the path and query become the
/// percent-encoding of their UTF-8; other characters that no URI holds (space, quotes, braces) are
/// percent-encoded as browsers do.
public struct TargetURI: Hashable, Sendable, CustomStringConvertible {
    /// The supported schemes.
    public enum Scheme: String, Hashable, Sendable {
        /// Cleartext HTTP, default port 80.
        case http
        /// HTTP over TLS, default port 443.
        case https

        /// The port used where the URI names none.
        public var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// Scheme, host and port: the scope of credentials and invalidation (RFC 9110 §4.3.1).
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme.
        public let scheme: Scheme
        /// The host in lower case; an IPv6 address keeps its brackets.
        public let host: String
        /// The port, also if it is the default.
        public let port: Int

        /// `scheme://host[:port]`, the default port left out.
        public var description: String {
            "\(scheme.rawValue)://\(host)" + (port == scheme.defaultPort ? "" : ":\(port)")
        }
    }

    /// Scheme, host and port.
    public let origin: Origin
    /// The path as sent, at least `/`.
    public let path: String
    /// The query without `?`; nil if there is no `?`, so that `a?` and `a` differ.
    public let query: String?
    /// `user[:password]` as given, still percent-encoded, or nil; never part of ``string``.
    public let userinfo: String?

    init(origin: Origin, path: String, query: String?, userinfo: String?) {
        self.origin = origin
        self.path = path
        self.query = query
        self.userinfo = userinfo
    }

    /// Stands for a target that cannot be used: its host is a name that never resolves (RFC 6761
    /// §6.4).
    package static let unusable = TargetURI(
        origin: Origin(scheme: .http, host: "unusable.invalid", port: 80),
        path: "/",
        query: nil,
        userinfo: nil
    )

    /// The scheme.
    public var scheme: Scheme { origin.scheme }

    /// `host[:port]` as the `Host` field carries it.
    public var authority: String {
        origin.port == scheme.defaultPort ? origin.host : "\(origin.host):\(origin.port)"
    }

    /// The request target in origin form: path and query (RFC 9112 §3.2.1).
    public var originForm: String {
        query.map { "\(path)?\($0)" } ?? path
    }

    /// The whole URI without userinfo and fragment, from which cache keys are made.
    public var string: String { "\(origin)\(originForm)" }

    /// The same as ``string``; without the credentials of the userinfo.
    public var description: String { string }

    /// The same target without userinfo.
    public var withoutUserinfo: TargetURI {
        TargetURI(origin: origin, path: path, query: query, userinfo: nil)
    }
}

/// The reason why a text is not a ``TargetURI``.
public struct TargetURIError: Error, Hashable, CustomStringConvertible {
    /// The reason, to follow `cannot use 'x' as a URL: `.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
