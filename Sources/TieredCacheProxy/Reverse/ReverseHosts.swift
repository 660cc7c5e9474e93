import HTTPCaching

/// The values of `Host` that a reverse proxy on loopback accepts.
///
/// The owner of `attacker.example.net` can make that name resolve to 127.0.0.1 as soon as a page is
/// loaded (DNS rebinding). The browser then takes the proxy for the page's own server and lets the
/// page read its responses. `Host` reveals the attack. Reserved names that cannot be registered are
/// accepted, and so are addresses.
struct ReverseHosts: Sendable {
    private let names: Set<String>
    private let allowsAll: Bool

    /// Domains that are not in the public DNS: RFC 2606, RFC 6761, RFC 8375.
    private static let reserved = [
        "localhost", "test", "example", "invalid", "example.com", "example.net", "example.org",
    ]

    /// Creates a list of accepted names, in addition to reserved names and addresses.
    ///
    /// - Parameters:
    ///   - origin: the URL of the origin; its host is accepted.
    ///   - others: further names, without port; `*` allows all.
    init(origin: TargetURI?, others: [String]) {
        let origins = origin.map { [$0.origin.host] } ?? []
        names = Set((origins + others).map(Self.normalised))
        allowsAll = others.contains("*")
    }

    /// Whether a request with this `Host` is accepted.
    ///
    /// - Parameter host: the value of `Host`, syntactically checked; nil for HTTP/1.0 without it,
    ///   which no browser sends.
    /// - Returns: false for a name that an attacker may have registered.
    func allows(_ host: String?) -> Bool {
        guard let host, !allowsAll else { return true }
        // The most frequent value is checked without creating a string.
        if host.utf8.starts(with: "127.0.0.1:".utf8) { return true }
        // An address in brackets.
        if host.utf8.first == UInt8(ascii: "[") { return true }
        let name = Self.normalised(String(host.prefix { $0 != ":" }))
        if Self.isAddress(name) || names.contains(name) { return true }
        // A name without a dot is not in the public DNS.
        guard name.utf8.contains(UInt8(ascii: ".")) else { return true }
        return Self.reserved.contains { name == $0 || name.hasSuffix(".\($0)") }
    }

    /// Converts to lower case and removes a trailing dot.
    private static func normalised(_ name: String) -> String {
        let name = name.lowercased()
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// Whether the name is an IPv4 address: browsers take a name that ends in a number for one, or
    /// refuse it (URL Standard, "ends in a number").
    private static func isAddress(_ name: String) -> Bool {
        guard let last = name.split(separator: ".").last else { return false }
        return last.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
