import HTTPCaching
import HTTPTypes

/// What a request to the player proxy is for: decided by its head alone.
enum PlayerRoute: Hashable, Sendable {
    /// A representation of an origin.
    case media(TargetURI)
    /// The page at the base.
    case statusPage
    /// Figures for Prometheus.
    case metrics
    /// A form of the page was sent.
    case form(PageAction)
    /// The base without its last slash.
    case redirectToBase
    /// Nothing that there is.
    case refused(Refusal)

    /// What a person can do on the page.
    enum PageAction: String, Hashable, Sendable {
        case remove, pin, unpin
    }

    /// Why a request is refused, with the status that says so.
    enum Refusal: Int, Hashable, Sendable {
        case badRequest = 400
        case notFound = 404
        case methodNotAllowed = 405
        case misdirected = 421
        /// It leads to this proxy itself.
        case loop = 508
    }

    /// Decides about a request.
    ///
    /// - Parameters:
    ///   - method: its method.
    ///   - target: its request target, as it stands in the request line.
    ///   - host: its `Host` field.
    ///   - address: the proxy's own.
    init(method: HTTPRequest.Method, target: String, host: String?, address: ProxyAddress) {
        guard let host, !host.isEmpty else {
            self = .refused(.badRequest)
            return
        }
        guard address.isNamed(by: host) else {
            self = .refused(.misdirected)
            return
        }
        // Absolute form would name another host than `Host` (RFC 9112 §3.2.2), CONNECT a tunnel.
        guard target.utf8.first == UInt8(ascii: "/"), method != .connect else {
            self = .refused(method == .connect ? .methodNotAllowed : .badRequest)
            return
        }
        let path = target.utf8.dropFirst()
        let token = path.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard address.hasToken(String(Substring(token))) else {
            self = .refused(.notFound)
            return
        }
        let rest = Substring(path[token.endIndex...])
        self = Self.inside(method: method, rest: rest)
        if case .media(let target) = self, address.isNamed(by: target.authority.lowercased()) {
            self = .refused(.loop)
        }
    }

    /// Decides about what follows the token.
    private static func inside(method: HTTPRequest.Method, rest: Substring) -> PlayerRoute {
        let isReading = method == .get || method == .head
        switch String(rest.utf8.prefix { $0 != UInt8(ascii: "?") }) ?? "" {
        case "": return isReading ? .redirectToBase : .refused(.methodNotAllowed)
        case "/": return isReading ? .statusPage : .refused(.methodNotAllowed)
        case "/metrics": return isReading ? .metrics : .refused(.methodNotAllowed)
        case let path:
            if let action = PageAction(rawValue: String(path.dropFirst())) {
                return method == .post ? .form(action) : .refused(.methodNotAllowed)
            }
        }
        guard let target = target(rest.dropFirst()) else {
            return .refused(isOfOrigin(rest.dropFirst()) ? .badRequest : .notFound)
        }
        return isReading ? .media(target) : .refused(.methodNotAllowed)
    }

    /// Whether a path is of the form `SCHEME/…` with a scheme that is spoken here.
    private static func isOfOrigin(_ path: Substring) -> Bool {
        path.hasPrefix("http/") || path.hasPrefix("https/")
    }

    /// `SCHEME/AUTHORITY/PATH?QUERY` as the URL that it stands for.
    private static func target(_ path: Substring) -> TargetURI? {
        guard isOfOrigin(path), let slash = path.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            return nil
        }
        let rest = path[path.utf8.index(after: slash)...]
        guard let first = rest.utf8.first, first != UInt8(ascii: "/") else { return nil }
        do {
            return try TargetURI("\(path[..<slash])://\(rest)")
        } catch {
            // The route says so in HTTP's words.
            return nil
        }
    }
}
