/// The target of a request: an `http` or `https` URI without fragment (RFC 9110 §4.2, §7.1).
///
/// The text is kept as it was given, because a cache that rewrites it joins what the origin keeps
/// apart: percent-encoding is neither added to nor removed from existing escapes (`%2F` is not
/// `/`), dot segments stay. Only what RFC 9110 §4.2.3 calls equivalent is made equal: scheme and
/// host in lower case, the default port dropped, an empty path written as `/`. Characters outside
/// ASCII in the path and query become the percent-encoding of their UTF-8; other characters that
/// no URI holds (space, quotes, braces) are percent-encoded as browsers do.
public struct TargetURI: Hashable, Sendable, CustomStringConvertible {
    /// The schemes that a request may have.
    public enum Scheme: String, Hashable, Sendable {
        /// Cleartext HTTP, default port 80.
        case http
        /// HTTP over TLS, default port 443.
        case https

        /// The port used where the URI names none.
        public var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// Scheme, host and port: what credentials and invalidation are scoped to (RFC 9110 §4.3.1).
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme.
        public let scheme: Scheme
        /// The host in lower case; an IPv6 address keeps its brackets.
        public let host: String
        /// The port, also where it is the default.
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
    /// The query without `?`, or nil where there is no `?`; `a?` and `a` differ.
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

    /// The whole URI without userinfo and fragment: what a cache key is made of.
    public var string: String { "\(origin)\(originForm)" }

    /// The same as ``string``: safe to log as far as credentials in the userinfo go.
    public var description: String { string }

    /// The same target without userinfo.
    public var withoutUserinfo: TargetURI {
        TargetURI(origin: origin, path: path, query: query, userinfo: nil)
    }
}

/// Why a text is not a ``TargetURI``.
public struct TargetURIError: Error, Hashable, CustomStringConvertible {
    /// What is wrong, in words that fit after `cannot use 'x' as a URL: `.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
