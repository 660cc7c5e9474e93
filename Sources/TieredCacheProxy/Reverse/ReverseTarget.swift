import HTTPCaching

/// The URL prefix that a reverse proxy maps requests to.
struct ReverseTarget: Hashable, Sendable {
    private let prefix: String

    /// Reads the URL of the origin.
    ///
    /// - Parameter url: an `http` or `https` URL; its path is prepended to that of every request.
    ///   The result is nil if it has a query.
    /// - Throws: `TargetURIError`.
    init?(url: String) throws(TargetURIError) {
        let target = try TargetURI(url)
        guard target.query == nil else { return nil }
        let path =
            target.path.utf8.last == UInt8(ascii: "/") ? target.path.dropLast() : target.path[...]
        prefix = "\(target.origin)\(path)"
    }

    /// The URL that `/` maps to.
    var root: TargetURI? { target(for: "/") }

    /// Whether the origin is the server at this port of 127.0.0.1.
    func leads(to port: Int) -> Bool {
        guard let origin = root?.origin else { return false }
        return origin.port == port && ["127.0.0.1", "localhost"].contains(origin.host)
    }

    /// The URL at the origin for a request target; nil for an invalid one.
    ///
    /// - Parameter requestTarget: in origin form, or in absolute form, which every server must
    ///   accept (RFC 9112 §3.2.2); its authority is ignored.
    /// - Returns: the URL.
    func target(for requestTarget: String) -> TargetURI? {
        guard let path = Self.originForm(requestTarget) else { return nil }
        do {
            return try TargetURI(prefix + path)
        } catch {
            // It is no valid URL: the client gets 400.
            return nil
        }
    }

    private static func originForm(_ target: String) -> String? {
        if target.utf8.first == UInt8(ascii: "/") { return target }
        do {
            return try TargetURI(target).originForm
        } catch {
            return nil
        }
    }
}
