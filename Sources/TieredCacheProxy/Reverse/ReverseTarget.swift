import HTTPCaching

/// Where the requests to a reverse proxy go.
struct ReverseTarget: Hashable, Sendable {
    private let prefix: String

    /// Reads the URL that the proxy stands for.
    ///
    /// - Parameter url: an `http` or `https` URL; its path goes in front of every request's, nil
    ///   comes of one with a query.
    /// - Throws: `TargetURIError`.
    init?(url: String) throws(TargetURIError) {
        let target = try TargetURI(url)
        guard target.query == nil else { return nil }
        let path =
            target.path.utf8.last == UInt8(ascii: "/") ? target.path.dropLast() : target.path[...]
        prefix = "\(target.origin)\(path)"
    }

    /// The URL that `/` stands for.
    var root: TargetURI? { target(for: "/") }

    /// Whether the origin is what listens on 127.0.0.1 at this port.
    func leads(to port: Int) -> Bool {
        guard let origin = root?.origin else { return false }
        return origin.port == port && ["127.0.0.1", "localhost"].contains(origin.host)
    }

    /// The URL at the origin for a request target; nil for one that has none.
    ///
    /// - Parameter requestTarget: in origin form, or in absolute form, which every server must
    ///   understand (RFC 9112 §3.2.2) and whose authority plays no role here.
    /// - Returns: the URL.
    func target(for requestTarget: String) -> TargetURI? {
        guard let path = Self.originForm(requestTarget) else { return nil }
        do {
            return try TargetURI(prefix + path)
        } catch {
            // Nothing that a URL can hold: the client gets 400.
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
