public import SystemPackage

/// Something that a verification found, as it finds it.
public struct DiskFinding: Hashable, Sendable {
    /// What is wrong.
    @nonexhaustive
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// Blocks that do not match their checksums.
        case damagedBlocks
        /// Blocks that should be stored in a body file that is not there.
        case missingBody
        /// A file with the name of a record that is none.
        case damagedRecord
        /// A body that no record speaks of.
        case orphanedBody
        /// A file of a body that was whole and not what was promised; no damage.
        case quarantined
        /// A file or directory that is not the cache's; never touched, and no damage.
        case unaccounted
    }

    /// What is wrong.
    public var kind: Kind
    /// The file.
    public var path: FilePath
    /// Whose entry it is, where that is known.
    public var key: CacheKey?
    /// Which blocks, where it is about blocks.
    public var blocks: [Int] = []
    /// Whether it was repaired: blocks made gaps, files removed.
    public var isRepaired = false
}
