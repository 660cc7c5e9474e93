import HTTPCaching
import HTTPTypes

/// The purpose of a request to the player proxy, decided by its head.
enum PlayerRoute: Hashable, Sendable {
    /// A representation of an origin.
    case media(TargetURI)
    /// The status page.
    case statusPage
    /// The metrics for Prometheus.
    case metrics
    /// A form of the status page.
    case form(PageAction)
    /// The base URL without its trailing slash.
    case redirectToBase
    /// No such resource.
    case refused(Refusal)

    /// The actions of the status page.
    enum PageAction: String, Hashable, Sendable {
        case remove, pin, unpin
    }

    /// Why a request is refused, as the status code of the response.
    enum Refusal: Int, Hashable, Sendable {
        case badRequest = 400
        case notFound = 404
        case methodNotAllowed = 405
        case misdirected = 421
        /// The target is this proxy itself.
        case loop = 508
    }

    /// Routes a request.
    ///
    /// - Parameters:
    ///   - method: its method.
    ///   - target: its request target, as it stands in the request line.
    ///   - host: its `Host` field.
    ///   - address: the address of this proxy.
    init(method: HTTPRequest.Method, target: String, host: String?, address: ProxyAddress) {
        guard let host, !host.isEmpty else {
            self = .refused(.badRequest)
            return
        }
        guard address.isNamed(by: host) else {
            self = .refused(.misdirected)
            return
        }
        // Absolute form may name another host than `Host` (RFC 9112 §3.2.2), and CONNECT asks for a
        // tunnel.
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

    /// Routes by the part of the target after the token.
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

    /// Whether a path has the form `SCHEME/…` with a supported scheme.
    private static func isOfOrigin(_ path: Substring) -> Bool {
        path.hasPrefix("http/") || path.hasPrefix("https/")
    }

    /// The URL of `SCHEME/AUTHORITY/PATH?QUERY`.
    private static func target(_ path: Substring) -> TargetURI? {
        guard isOfOrigin(path), let slash = path.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            return nil
        }
        let rest = path[path.utf8.index(after: slash)...]
        guard let first = rest.utf8.first, first != UInt8(ascii: "/") else { return nil }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        // Brackets around an IPv6 address are escaped in a proxied URL that is valid.
        let host = authority.replacing("%5B", with: "[").replacing("%5D", with: "]")
        do {
            return try TargetURI("\(path[..<slash])://\(host)\(rest[authority.endIndex...])")
        } catch {
            // The route becomes a refusal with a status code.
            return nil
        }
    }
}
