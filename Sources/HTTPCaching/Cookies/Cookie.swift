/// A cookie of an origin, and where it is sent (RFC 6265 §5).
package struct Cookie: Hashable, Sendable {
    /// The longest name and value together, in bytes; browsers ignore longer ones.
    private static let maximumSize = 4096

    let name: String
    package let value: String
    /// The host that it is for.
    let domain: String
    /// Whether hosts below ``domain`` do not get it.
    let isHostOnly: Bool
    let path: String
    let isSecure: Bool
    /// Nil for as long as the jar is kept.
    package let expires: WallTime?

    /// Reads a `Set-Cookie` value (RFC 6265 §5.2, §5.3); nil for what is none, or is for hosts that
    /// are not the origin's.
    ///
    /// - Parameters:
    ///   - text: the field value.
    ///   - target: the URL that answered with it.
    ///   - now: when it did.
    package init?(_ text: String, from target: TargetURI, at now: WallTime) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let (name, value) = Self.pair(parts[0]), let value, !name.isEmpty,
            name.utf8.count + value.utf8.count <= Self.maximumSize
        else { return nil }
        (self.name, self.value) = (name, value)
        var attributes: [String: String] = [:]
        for part in parts.dropFirst() {
            guard let (name, value) = Self.pair(part) else { continue }
            attributes[name.lowercased()] = value ?? ""
        }
        let host = target.origin.host
        let named = attributes["domain"]?.lowercased() ?? ""
        let domain = named.hasPrefix(".") ? String(named.dropFirst()) : named
        isHostOnly = domain.isEmpty || domain == host
        self.domain = domain.isEmpty ? host : domain
        // A name without a dot is that of all hosts below a top level.
        guard isHostOnly || (domain.contains(".") && Self.isHost(host, below: domain)) else {
            return nil
        }
        let path = attributes["path"] ?? ""
        self.path = path.hasPrefix("/") ? path : Self.folder(of: target.path)
        isSecure = attributes["secure"] != nil
        expires = Self.end(attributes, now: now)
        // Anybody on the way could have set it (draft-ietf-httpbis-rfc6265bis §5.7).
        guard !isSecure || target.scheme == .https else { return nil }
    }

    /// The cookie that another one's ``scope`` describes.
    ///
    /// - Parameters:
    ///   - scope: the scope.
    ///   - value: its value.
    package init?(scope: String, value: String) {
        let parts = scope.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, !parts[4].isEmpty else { return nil }
        (isHostOnly, isSecure) = (parts[0].isEmpty, !parts[1].isEmpty)
        (domain, path, name) = (parts[2], parts[3], parts[4])
        self.value = value
        expires = nil
    }

    /// All that tells it from other cookies, and where it is sent, as lines.
    package var scope: String {
        [isHostOnly ? "" : "below", isSecure ? "secure" : "", domain, path, name]
            .joined(separator: "\n")
    }

    /// Whether the next cookie with the same names takes its place.
    func isReplaced(by other: Cookie) -> Bool {
        (name, domain, path) == (other.name, other.domain, other.path)
    }

    /// Whether a request for the URL has it (RFC 6265 §5.4).
    func isFor(_ target: TargetURI) -> Bool {
        let host = target.origin.host
        guard host == domain || (!isHostOnly && Self.isHost(host, below: domain)),
            !isSecure || target.scheme == .https, target.path.hasPrefix(path)
        else { return false }
        let next = target.path.utf8.dropFirst(path.utf8.count).first
        return path.hasSuffix("/") || next == nil || next == slash
    }

    private static func pair(_ text: Substring) -> (name: String, value: String?)? {
        let name = text.prefix { $0 != "=" }
        let value = name.endIndex < text.endIndex ? text[text.index(after: name.endIndex)...] : nil
        return (name.trimmingWhitespace, value?.trimmingWhitespace)
    }

    private static func isHost(_ host: String, below domain: String) -> Bool {
        let isAddress = host.hasPrefix("[") || host.utf8.allSatisfy { $0.isDigit || $0 == dot }
        return host.hasSuffix("." + domain) && !isAddress
    }

    /// The path of cookies without one (RFC 6265 §5.1.4).
    private static func folder(of path: String) -> String {
        let tail = path.utf8.reversed().prefix { $0 != slash }.count + 1
        let folder = String(decoding: path.utf8.dropLast(tail), as: UTF8.self)
        return folder.isEmpty ? "/" : folder
    }

    /// When it ends; `Max-Age` goes before `Expires`.
    private static func end(_ attributes: [String: String], now: WallTime) -> WallTime? {
        if let text = attributes["max-age"], let first = text.utf8.first,
            first.isDigit || first == UInt8(ascii: "-"), text.utf8.dropFirst().allSatisfy(\.isDigit)
        {
            let seconds = Int64(text) ?? (first.isDigit ? .max : 0)
            return now.advanced(by: .seconds(min(max(0, seconds), 400 * 86_400)))
        }
        return attributes["expires"].flatMap { HTTPDate.parse(cookieDate: $0) }
    }
}

private let slash = UInt8(ascii: "/")
private let dot = UInt8(ascii: ".")
