package import HTTPCaching
package import TieredCache

/// Rewrites the URLs of a playlist to URLs of the proxy.
package struct PlaylistRewriter: Sendable {
    package let kind: PlaylistKind
    private let addresses: AddressRewriter
    private let imported: HLSVariables

    /// Creates a rewriter.
    ///
    /// - Parameters:
    ///   - kind: the kind of the playlist.
    ///   - prefix: the prefix of `SCHEME/AUTHORITY/PATH` in proxied URLs.
    ///   - requested: the URL of the playlist that the player requested.
    ///   - final: the final URL, after redirects.
    ///   - rules: the rules for hosts; URLs of excluded ones do not lead through the proxy.
    ///   - imported: the variables of the master playlist.
    package init(
        _ kind: PlaylistKind,
        prefix: String,
        requested: TargetURI,
        final: TargetURI,
        rules: HostRules = HostRules(),
        importing imported: HLSVariables = HLSVariables()
    ) {
        self.kind = kind
        self.imported = imported
        addresses = AddressRewriter(
            prefix: prefix,
            requested: requested,
            final: final,
            rules: rules
        )
    }

    /// Rewrites the bytes; those that do not begin like a playlist stay as they are.
    ///
    /// - Returns: the bytes; nil if the playlist exceeds its budget.
    package func rewrite(_ bytes: [UInt8]) -> [UInt8]? {
        var budget = PlaylistBudget(forLength: bytes.count)
        return rewrite(bytes, budget: &budget)
    }

    func rewrite(_ bytes: [UInt8], budget: inout PlaylistBudget) -> [UInt8]? {
        guard kind.isBeginning(of: bytes) else { return bytes }
        return switch kind {
        case .hls: HLSRewriter.rewrite(bytes, with: addresses, importing: imported, budget: &budget)
        case .dash: DASHRewriter.rewrite(bytes, with: addresses, budget: &budget)
        }
    }
}
