import HTTPCaching

/// By which names a reverse proxy on loopback may be asked.
///
/// A page of `attacker.example.net` can have that name point to 127.0.0.1 as soon as it is loaded
/// (DNS rebinding). The browser then takes the proxy for the page's own server, and lets the page
/// read what the proxy answers. The name in `Host` gives it away. Names that nobody can register
/// are let pass, and so are addresses, which are no names.
struct ReverseHosts: Sendable {
    private let names: Set<String>
    private let allowsAll: Bool

    /// Domains that no public name server has: RFC 2606, RFC 6761, RFC 8375.
    private static let reserved = [
        "localhost", "test", "example", "invalid", "example.com", "example.net", "example.org",
    ]

    /// Describes what is allowed beside the names that are harmless.
    ///
    /// - Parameters:
    ///   - origin: the URL that the proxy stands for, whose host is a good name for it.
    ///   - others: further names, without port; `*` allows all.
    init(origin: TargetURI?, others: [String]) {
        let origins = origin.map { [$0.origin.host] } ?? []
        names = Set((origins + others).map(Self.normalised))
        allowsAll = others.contains("*")
    }

    /// Whether a request may ask by a name.
    ///
    /// - Parameter host: the field `Host`, checked to be one; nil for HTTP/1.0 without it, which no
    ///   browser speaks.
    /// - Returns: false for a name that a stranger may have made up.
    func allows(_ host: String?) -> Bool {
        guard let host, !allowsAll else { return true }
        // What nearly all requests have costs no string.
        if host.utf8.starts(with: "127.0.0.1:".utf8) { return true }
        // An address in brackets.
        if host.utf8.first == UInt8(ascii: "[") { return true }
        let name = Self.normalised(String(host.prefix { $0 != ":" }))
        if Self.isAddress(name) || names.contains(name) { return true }
        // A name without a dot is none of the public ones.
        guard name.utf8.contains(UInt8(ascii: ".")) else { return true }
        return Self.reserved.contains { name == $0 || name.hasSuffix(".\($0)") }
    }

    /// In lower case, without the dot of the root.
    private static func normalised(_ name: String) -> String {
        let name = name.lowercased()
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// Whether it is an IPv4 address: a browser takes a name that ends in a number for one, or for
    /// nothing (URL Standard, "ends in a number").
    private static func isAddress(_ name: String) -> Bool {
        guard let last = name.split(separator: ".").last else { return false }
        return last.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
