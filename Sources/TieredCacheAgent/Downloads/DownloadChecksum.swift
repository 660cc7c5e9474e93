import TieredCache

/// The digest of the option `checksum`, `sha-256=HEX` for example.
struct DownloadChecksum: Hashable {
    let digest: ContentDigest

    /// Nil for an algorithm that is not computed here, or a text that is no digest of it.
    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2,
            let algorithm = ContentDigest.Algorithm(rawValue: parts[0].lowercased()),
            let digest = ContentDigest(algorithm, hexadecimal: String(parts[1]))
        else { return nil }
        self.digest = digest
    }
}
