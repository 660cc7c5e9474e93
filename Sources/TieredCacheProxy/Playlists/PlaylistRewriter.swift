package import HTTPCaching

/// Makes a playlist lead through the proxy.
package struct PlaylistRewriter: Sendable {
    package let kind: PlaylistKind
    private let addresses: AddressRewriter

    /// Creates a rewriter.
    ///
    /// - Parameters:
    ///   - kind: what the playlist is.
    ///   - prefix: what stands in front of `SCHEME/AUTHORITY/PATH` in a proxied URL.
    ///   - requested: the playlist's own URL.
    ///   - final: the URL that answered after redirects.
    package init(_ kind: PlaylistKind, prefix: String, requested: TargetURI, final: TargetURI) {
        self.kind = kind
        addresses = AddressRewriter(prefix: prefix, requested: requested, final: final)
    }

    /// Rewrites the bytes; what does not begin as a playlist stays as it is.
    package func rewrite(_ bytes: [UInt8]) -> [UInt8] {
        guard kind.isBeginning(of: bytes) else { return bytes }
        return switch kind {
        case .hls: HLSRewriter.rewrite(bytes, addresses)
        case .dash: DASHRewriter.rewrite(bytes, addresses)
        }
    }
}
