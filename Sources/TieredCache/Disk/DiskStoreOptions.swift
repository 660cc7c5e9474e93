public import SystemPackage

/// The options of a disk store; they do not change while it is open.
@_spi(Benchmarks) public struct DiskStoreOptions: Sendable {
    /// The directory; created, 0700, where it does not exist.
    package var root: FilePath
    /// The smallest ``limit``: the bytes of FORMAT and LOCK, which every directory has.
    ///
    /// A store that only reads has no minimum.
    package static let minimumLimit: Int64 = 8192

    /// The most that the store's files may be allocated, in bytes; at least ``minimumLimit``.
    package var limit: Int64
    /// The most of the volume that the store may take, in percent; lowers ``limit`` when the
    /// directory is opened.
    ///
    /// `nil`, the default, leaves the limit as it is.
    package var maximumVolumePercentage: Int?
    /// The free space of the volume, in bytes, below which nothing is written; `nil` is the smaller
    /// of 256 MiB and 5 % of the volume.
    public var minimumFree: Int64?
    /// A complete body up to this length lives in its record; at most one block.
    ///
    /// Default 65,536.
    package var inlineLimit: Int = Int(BlockTable.blockSize)
    /// The number of unused entries that keep their descriptor.
    ///
    /// Default 256.
    public var maximumOpenEntries: Int = 256
    /// The memory for the heads of entries with closed files, in bytes.
    ///
    /// A hit on one of them opens its file and reads no record. Default 4 MiB, a few thousand
    /// entries; 0 keeps none.
    public var maximumHeadMemory: Int = 4 << 20

    /// Whether the store only reads: it does not become the owner, even of a directory without one.
    var isReader = false
    /// Called for each removal, requested ones included, on any thread; it must not block.
    var didLeave: (@Sendable (DiskRemoval) -> Void)?
    /// Called before the store releases the directory, on the thread that closes the store.
    var willClose: (@Sendable (DiskStore) -> Void)?
    /// The number of entries from which on closing writes a snapshot of the index: scanning fewer
    /// costs less than syncing a file.
    var minimumSnapshotEntries = 4096
    /// The length and allocation in bytes from which on an entry first loses its tail, before it is
    /// evicted.
    var hugeBody: Int64 = 16 << 20
    /// The bytes kept of such an entry; whole blocks.
    var headLength: Int64 = 1 << 20
    /// The digest that names a key's files; tests force collisions with it.
    var digest: @Sendable (CacheKey) -> MD5Digest = { $0.digest }
    /// How a thread waits for a lock of the store's files; nil blocks it.
    var lockWaiter: (any LockWaiter)?
    /// Runs later, on a thread that may wait for writes of the disk, what a call leaves to be
    /// written; nil runs it within the call.
    var runLater: RunLater?
    /// The first generation, and the order of the index, are made from it; `nil` is random.
    var generationSeed: UInt64?

    typealias RunLater = @Sendable (_ work: @escaping @Sendable () -> Void) -> Void

    /// Runs work that may wait for the disk: within the call on a thread that is there to wait.
    static func run(later: RunLater?, _ work: @escaping @Sendable () -> Void) {
        guard let later, !IOExecutor.hasCurrentThread else { return work() }
        later(work)
    }

    /// Creates options with the defaults.
    public init(root: FilePath, limit: Int64) {
        self.root = root
        self.limit = limit
    }

    /// The options with values clamped to their ranges.
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
    /// Room was needed: the entry stays, but lost blocks that no reader was near.
    case coldBlocks
    /// The volume was about to have less free than must stay free.
    case volumeFloor
}

/// The eviction class of an entry.
package struct DiskEntryClass: OptionSet, Hashable, Sendable {
    /// The bits, as the record's flags have them.
    package let rawValue: UInt32

    /// Creates a class from its bits.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Never evicted and never trimmed; removed only by name or with everything.
    package static let pinned = DiskEntryClass(rawValue: Record.Flags.pinned.rawValue)
    /// Prefetched: evicted first until it is used.
    package static let prefetched = DiskEntryClass(rawValue: Record.Flags.prefetched.rawValue)

    var flags: Record.Flags { Record.Flags(rawValue: rawValue & Self.all.rawValue) }

    private static let all: DiskEntryClass = [.pinned, .prefetched]
}

/// Whether a store may write.
package enum DiskAccess: Sendable {
    /// This store owns the directory.
    case owner
    /// Another process owns it: hits are read, every writing call throws
    /// ``CacheError/Code/notOwner``.
    case guest(DirectoryOwner)
    /// The directory cannot be written: hits are read, every writing call throws this error.
    case readOnly(CacheError)

    /// Whether writing calls can succeed.
    package var canWrite: Bool {
        if case .owner = self { true } else { false }
    }

    /// The process that owns the directory in place of this one; nil if none is known to.
    var owner: DirectoryOwner? {
        if case .guest(let owner) = self { owner } else { nil }
    }
}

/// The usage of a store.
public struct DiskUsage: Hashable, Sendable {
    /// The number of entries.
    public var entries: Int
    /// The bytes allocated for the store's files (`st_blocks` × 512), without directories.
    public var bytes: Int64
    /// The most that ``bytes`` may become.
    public var limit: Int64
}
