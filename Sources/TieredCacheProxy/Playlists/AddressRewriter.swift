package import HTTPCaching
package import TieredCache

/// Rewrites the URLs of a playlist to URLs of the proxy.
///
/// An absolute URL, or a reference that starts with a slash, would bypass the proxy; other relative
/// references are kept. If the playlist was redirected, relative references are relative to the
/// final URL, which the player does not know, so they are made absolute first. The text after the
/// authority is never changed: templates, escapes and fragments survive. URLs of hosts that rules
/// exclude lead to the host itself; where there are such rules, so do URLs whose host cannot be
/// read.
package struct AddressRewriter: Sendable {
    private let prefix: String
    private let rules: HostRules
    private var final: TargetURI
    /// The number of folders in the path of the playlist, to detect references above the root.
    private var depth: Int
    private let isRedirected: Bool
    /// Whether the final URL differs from the one that the player requested.
    let isElsewhere: Bool

    /// Creates a rewriter.
    ///
    /// - Parameters:
    ///   - prefix: the prefix of `SCHEME/AUTHORITY/PATH`, such as `/TOKEN/` or
    ///     `http://127.0.0.1:PORT/TOKEN/`.
    ///   - requested: the URL of the playlist that the player requested.
    ///   - final: the URL that answered after redirects.
    ///   - rules: the rules for hosts.
    package init(prefix: String, requested: TargetURI, final: TargetURI, rules: HostRules) {
        self.prefix = prefix
        self.rules = rules
        self.final = final
        depth = final.path.folderDepth
        isElsewhere = requested != final
        isRedirected =
            requested.origin != final.origin || requested.path.folder != final.path.folder
    }

    /// The URL that answered.
    var location: TargetURI { final }

    /// A rewriter for references relative to another base, for example a base URL of a manifest.
    func at(_ base: TargetURI, budget: inout PlaylistBudget) -> AddressRewriter {
        budget.spend(work: base.path.utf8.count)
        var copy = self
        copy.final = base
        copy.depth = base.path.folderDepth
        return copy
    }

    /// The rewritten URL; nil if it can stay as it is, or if the budget is exceeded.
    func rewritten(
        _ address: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        guard !budget.isExceeded else { return nil }
        let result = rewrittenAnyway(address, budget: &budget)
        budget.spend(output: result?.count ?? 0)
        return budget.isExceeded ? nil : result
    }

    private func rewrittenAnyway(
        _ address: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        if let (scheme, rest) = Self.splitScheme(address) {
            guard scheme == "http" || scheme == "https", rest.starts(with: "//".utf8) else {
                return nil
            }
            return link(scheme, to: rest.dropFirst(2), budget: &budget)
        }
        if address.starts(with: "//".utf8) {
            return link(final.scheme.rawValue, to: address.dropFirst(2), budget: &budget)
        }
        if address.first == slash {
            return Array(origin(of: final).utf8) + address
        }
        guard !address.isEmpty, address.first != UInt8(ascii: "#"),
            isRedirected || climbsTooHigh(address)
        else { return nil }
        return resolved(address, budget: &budget)
    }

    /// The URL of what follows `SCHEME://`.
    private func link(
        _ scheme: String,
        to rest: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> [UInt8] {
        let isExcluded = !rules.excluded.isEmpty && excludes(scheme, rest, budget: &budget)
        return Array((isExcluded ? "\(scheme)://" : "\(prefix)\(scheme)/").utf8) + rest
    }

    private func excludes(
        _ scheme: String,
        _ rest: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> Bool {
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        budget.spend(work: authority.count)
        do throws(TargetURIError) {
            let text = String(decoding: authority, as: UTF8.self)
            return rules.excludes(try TargetURI("\(scheme)://\(text)/"))
        } catch {
            // A player may make any host of it, or of a template in it.
            return true
        }
    }

    /// The beginning of all URLs of an origin, as the player is to ask for them.
    private func origin(of target: TargetURI) -> String {
        let direct = "\(target.scheme.rawValue)://\(target.authority)"
        return rules.excludes(target)
            ? direct : "\(prefix)\(target.scheme.rawValue)/\(target.authority)"
    }

    /// Whether a relative reference leads above the root of its host.
    ///
    /// There is nothing above the root (RFC 3986 §5.2.4), but in a proxied URL the host precedes
    /// it.
    private func climbsTooHigh(_ address: some Collection<UInt8>) -> Bool {
        var depth = depth
        // A segment consists of dots only if its length equals its number of dots.
        var (length, dots) = (0, 0)
        for byte in address {
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"):
                return length == 2 && dots == 2 && depth == 0
            case slash:
                if length == 2, dots == 2 {
                    depth -= 1
                } else if length != 1 || dots != 1 {
                    depth += 1
                }
                if depth < 0 { return true }
                (length, dots) = (0, 0)
            default:
                length += 1
                if byte == UInt8(ascii: ".") { dots += 1 }
            }
        }
        return length == 2 && dots == 2 && depth == 0
    }

    /// The folder of the final URL, proxied; nil if it is the folder that the player knows.
    var redirectedFolder: [UInt8]? {
        guard isRedirected else { return nil }
        return Array((origin(of: final) + final.path.folder).utf8)
    }

    private func resolved(
        _ address: some Collection<UInt8>,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        // Resolving costs as much as the base path, even for a short reference.
        budget.spend(work: final.path.utf8.count + address.count)
        let text = String(decoding: address, as: UTF8.self)
        do throws(TargetURIError) {
            let target = try final.resolving(reference: text)
            let fragment = address.drop { $0 != UInt8(ascii: "#") }
            return Array((origin(of: target) + target.originForm).utf8) + Array(fragment)
        } catch {
            // The reference is invalid: it stays as it is, and the player reports it.
            return nil
        }
    }

    /// A scheme in lower case and what follows its colon (RFC 3986 §3.1).
    private static func splitScheme<Text: Collection<UInt8>>(
        _ address: Text
    ) -> (scheme: String, rest: Text.SubSequence)? {
        let scheme = address.prefix { byte in
            byte.isASCIILetter || byte.isASCIIDigit || "+-.".utf8.contains(byte)
        }
        // No registered scheme is longer, and the text is not trusted.
        guard let first = scheme.first, first.isASCIILetter, scheme.count <= 32,
            scheme.endIndex < address.endIndex, address[scheme.endIndex] == UInt8(ascii: ":")
        else { return nil }
        let name = String(decoding: scheme, as: UTF8.self).lowercased()
        return (name, address[address.index(after: scheme.endIndex)...])
    }
}

private let slash = UInt8(ascii: "/")

extension String {
    /// The number of folders between the path and the root of its host.
    fileprivate var folderDepth: Int { utf8.count { $0 == slash } - 1 }

    /// The path up to its last slash.
    fileprivate var folder: String {
        let name = utf8.reversed().prefix { $0 != slash }
        return String(decoding: utf8.dropLast(name.count), as: UTF8.self)
    }
}

extension UInt8 {
    var isASCIILetter: Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }

    var isASCIIDigit: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
    }

    var isXMLSpace: Bool {
        self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D
    }
}
