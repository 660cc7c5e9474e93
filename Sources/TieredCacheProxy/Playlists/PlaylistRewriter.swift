package import HTTPCaching

/// Makes a playlist lead through the proxy.
package struct PlaylistRewriter: Sendable {
    package let kind: PlaylistKind
    private let addresses: AddressRewriter
    private let imported: HLSVariables

    /// Creates a rewriter.
    ///
    /// - Parameters:
    ///   - kind: what the playlist is.
    ///   - prefix: what stands in front of `SCHEME/AUTHORITY/PATH` in a proxied URL.
    ///   - requested: the playlist's own URL.
    ///   - final: the URL that answered after redirects.
    ///   - imported: the variables of the master playlist.
    package init(
        _ kind: PlaylistKind,
        prefix: String,
        requested: TargetURI,
        final: TargetURI,
        importing imported: HLSVariables = HLSVariables()
    ) {
        self.kind = kind
        self.imported = imported
        addresses = AddressRewriter(prefix: prefix, requested: requested, final: final)
    }

    /// Rewrites the bytes; what does not begin as a playlist stays as it is.
    ///
    /// - Returns: nil for a playlist that exceeds its budget.
    package func rewrite(_ bytes: [UInt8]) -> [UInt8]? {
        var budget = PlaylistBudget(forLength: bytes.count)
        return rewrite(bytes, &budget)
    }

    func rewrite(_ bytes: [UInt8], _ budget: inout PlaylistBudget) -> [UInt8]? {
        guard kind.isBeginning(of: bytes) else { return bytes }
        return switch kind {
        case .hls: HLSRewriter.rewrite(bytes, addresses, importing: imported, &budget)
        case .dash: DASHRewriter.rewrite(bytes, addresses, &budget)
        }
    }
}
