/// Hosts that a setting names, as `no_proxy` does.
///
/// | text | hosts |
/// | --- | --- |
/// | `example.org`, `.example.org`, `*.example.org` | the host and all below it |
/// | `example.org:8080` | the same, at this port alone |
/// | `127.0.0.1`, `::1`, `[::1]:8080` | an address |
/// | `*`, `*:8080` | all |
package struct HostPattern: Hashable, Sendable {
    /// In lower case, without brackets and without a dot at either end; nil for all hosts.
    private let host: String?
    /// Nil for all ports.
    private let port: Int?

    /// Reads a text; the result is nil for one that can name no host of a ``TargetURI``.
    package init?(_ text: some StringProtocol) {
        var name = text.utf8[...]
        let isAll = name.first == star && (name.count == 1 || name.dropFirst().first == colon)
        if isAll || name.starts(with: "*.".utf8) { name = name.dropFirst() }
        if !isAll, name.first == dot { name = name.dropFirst() }
        let rest = String(decoding: name, as: UTF8.self)
        let isBareAddress =
            name.first != bracket && (rest.contains("::") || name.count(where: { $0 == colon }) > 5)
        let authority = isAll ? "all\(rest)" : isBareAddress ? "[\(rest)]" : rest
        // A URL has more than an authority, and its port may be empty.
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }),
            authority.utf8.last != colon, authority.utf8.first != dot
        else { return nil }
        let origin: TargetURI.Origin
        do throws(TargetURIError) {
            origin = try TargetURI("http://\(authority)/").origin
        } catch {
            return nil
        }
        let host = Self.plain(origin.host)
        guard !host.isEmpty else { return nil }
        self.host = isAll ? nil : String(decoding: host, as: UTF8.self)
        port = authority.utf8.count > origin.host.utf8.count ? origin.port : nil
    }

    /// Whether an origin is one of the hosts, at the port.
    package func matches(_ origin: TargetURI.Origin) -> Bool {
        guard port == nil || port == origin.port else { return false }
        guard let name = host?.utf8 else { return true }
        let host = Self.plain(origin.host)
        guard host.count >= name.count, host.suffix(name.count).elementsEqual(name) else {
            return false
        }
        return host.count == name.count || host.dropLast(name.count).last == dot
    }

    /// A host without what does not tell it from others: the dot at its end, the brackets of an
    /// address.
    private static func plain(_ host: String) -> Substring.UTF8View {
        var host = host.utf8[...]
        if host.last == dot { host.removeLast() }
        guard host.first == bracket else { return host }
        return host.dropFirst().dropLast()
    }
}

private let star = UInt8(ascii: "*")
private let dot = UInt8(ascii: ".")
private let colon = UInt8(ascii: ":")
private let bracket = UInt8(ascii: "[")
