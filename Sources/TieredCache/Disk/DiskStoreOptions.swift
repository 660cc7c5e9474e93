public import SystemPackage

/// What a disk store is made with; nothing of it changes later.
@_spi(Benchmarks) public struct DiskStoreOptions: Sendable {
    /// The directory; created, 0700, where it does not exist.
    package var root: FilePath
    /// The smallest ``limit``: what FORMAT and LOCK take, without which there is no directory.
    ///
    /// A store that only reads has none.
    package static let minimumLimit: Int64 = 8192

    /// The most that the store's files may be allocated, in bytes; at least ``minimumLimit``.
    package var limit: Int64
    /// The most of the volume that the store may take, in percent; lowers ``limit`` when the
    /// directory is opened.
    ///
    /// `nil`, the default, leaves the limit as it is.
    package var maximumVolumePercentage: Int?
    /// Below so much free space on the volume nothing is written; `nil` is the smaller of 256 MiB
    /// and 5 % of the volume.
    public var minimumFree: Int64?
    /// A complete body up to this length lives in its record; at most one block.
    ///
    /// Default 65,536.
    package var inlineLimit: Int = Int(BlockTable.blockSize)
    /// How many entries that nobody uses keep their descriptor.
    ///
    /// Default 256.
    public var maximumOpenEntries: Int = 256
    /// How much memory the heads of entries may take whose files are closed, in bytes.
    ///
    /// A hit on one of them opens its file and reads no record. Default 4 MiB, a few thousand
    /// entries; 0 keeps none.
    public var maximumHeadMemory: Int = 4 << 20

    /// Whether nothing is to be changed: the directory is not owned, although it may have no owner.
    var isReader = false
    /// Called with whatever is gone, also what was asked for: by any thread, which must not wait.
    var didLeave: (@Sendable (DiskRemoval) -> Void)?
    /// Called before the directory is given up, on the thread that closes the store.
    var willClose: (@Sendable (DiskStore) -> Void)?
    /// From how many entries on the index is written down when the store closes: reading through
    /// fewer takes less than syncing a file.
    var minimumSnapshotEntries = 4096
    /// Above so many allocated bytes an entry loses its tail before it leaves.
    var hugeBody: Int64 = 16 << 20
    /// What is kept of such an entry; whole blocks.
    var headLength: Int64 = 1 << 20
    /// Makes the name of a key; tests force collisions with it.
    var digest: @Sendable (CacheKey) -> MD5Digest = { $0.digest }
    /// How a thread waits for a lock of the store's files; nil blocks it.
    var lockWaiter: (any LockWaiter)?
    /// The first generation, and the order of the index, are made from it; `nil` is random.
    var generationSeed: UInt64?

    /// Creates options with the defaults.
    public init(root: FilePath, limit: Int64) {
        self.root = root
        self.limit = limit
    }

    /// The same within what there can be.
    func within(limit: Int64) -> Self {
        var options = self
        options.limit = limit
        options.inlineLimit = min(max(inlineLimit, 0), Int(BlockTable.blockSize))
        options.maximumOpenEntries = max(maximumOpenEntries, 1)
        return options
    }

    /// Refuses a limit that the directory's own files exceed.
    static func check(limit: Int64) throws(CacheError) {
        guard limit >= minimumLimit else {
            throw CacheError(
                .invalidArgument,
                "a disk limit of \(limit) bytes holds nothing; the smallest is \(minimumLimit)"
            )
        }
    }
}

/// Why an entry was evicted.
package enum DiskEvictionReason: String, Hashable, Sendable, CaseIterable {
    /// Room was needed, and it had been prefetched and never used.
    case prefetchedUnused
    /// Room was needed, and it was the one used least recently.
    case leastRecentlyUsed
    /// The caller trimmed the store.
    case trimmed
    /// Room was needed: it is still there, but gave up blocks that nobody was reading.
    case coldBlocks
    /// The volume was about to have less free than must stay free.
    case volumeFloor
}

/// What an entry is stored as.
package struct DiskEntryClass: OptionSet, Hashable, Sendable {
    /// The bits, as the record's flags have them.
    package let rawValue: UInt32

    /// Creates a class from its bits.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Never evicted and never trimmed; removed only by name or with everything.
    package static let pinned = DiskEntryClass(rawValue: Record.Flags.pinned.rawValue)
    /// Fetched before anybody asked: the first to be evicted until it is used.
    package static let prefetched = DiskEntryClass(rawValue: Record.Flags.prefetched.rawValue)

    var flags: Record.Flags { Record.Flags(rawValue: rawValue & Self.all.rawValue) }

    private static let all: DiskEntryClass = [.pinned, .prefetched]
}

/// Whether a store may write.
package enum DiskAccess: Sendable {
    /// This store owns the directory.
    case owner
    /// Another process does: hits are read, every writing call throws ``CacheError/Code/notOwner``.
    case guest(owner: Int32?)
    /// The directory cannot be written: hits are read, every writing call throws this error.
    case readOnly(CacheError)

    /// Whether writing calls can succeed.
    package var canWrite: Bool {
        if case .owner = self { true } else { false }
    }
}

/// How much a store holds.
public struct DiskUsage: Hashable, Sendable {
    /// The number of entries.
    public var entries: Int
    /// What the store's files are allocated (`st_blocks` × 512), directories apart.
    public var bytes: Int64
    /// The most that ``bytes`` may become.
    public var limit: Int64
}
