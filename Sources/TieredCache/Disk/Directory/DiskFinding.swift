public import SystemPackage

/// One finding of a verification.
public struct DiskFinding: Hashable, Sendable {
    /// What is wrong.
    @nonexhaustive
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Blocks that do not match their checksums.
        case damagedBlocks
        /// Blocks that the table counts as stored, while the body file is missing.
        case missingBody
        /// A file with the name of a record that is no valid record.
        case damagedRecord
        /// A body without a record.
        case orphanedBody
        /// A quarantined file: the body was complete and failed its digest; no damage.
        case quarantined
        /// A foreign file or directory; never touched, and no damage.
        case unaccounted
    }

    /// What is wrong.
    public var kind: Kind
    /// The file.
    public var path: FilePath
    /// The key of the entry, if it is known.
    public var key: CacheKey?
    /// The numbers of the blocks, for findings about blocks.
    public var blocks: [Int] = []
    /// Whether it was repaired: blocks made gaps, files removed.
    public var isRepaired = false
}
