import HTTPCaching
import Synchronization

/// A lease on one generation of an entry: its metadata, and the blocks of its body that are stored.
///
/// While a reference exists, the entry is not evicted, and it stays readable after it was replaced
/// or removed: a reader sees one generation (invariant 3). Release the reference when done; there
/// is nothing to close. Any thread may call; calls block on the disk unless their name says
/// otherwise.
@_spi(Benchmarks) public final class DiskEntry: Sendable {
    /// The whole key.
    package let key: CacheKey
    /// A number that no other body of this key ever has.
    package let generation: UInt64

    let fileSystem: any FileSystem
    /// The store of the entry; nil once it is released: a lease still reads, and nothing is
    /// written.
    ///
    /// Weak, because the store references its open entries and closes with its own last reference.
    // Set once, in `init`: a constant cannot be weak before Swift 6.3.
    private(set) nonisolated(unsafe) weak var store: DiskStore?
    let name: EntryName
    let created: WallTime
    let state: Guarded<DiskEntryState>
    /// That of the store's options, which may be gone when the last lease is given back.
    private let runLater: DiskStoreOptions.RunLater?

    /// Set by each hit, taken by the clock of the descriptor cache.
    let clock = Atomic<Bool>(true)
    /// Set by each hit, taken when recency is written down.
    let isUsed = Atomic<Bool>(false)
    /// The time of a use that was not written down yet; 0 = none.
    let pendingUse = Atomic<UInt64>(0)
    /// The last use that was written down, in nanoseconds since 1970; 0 = none.
    let persistedUse: Atomic<UInt64>
    /// The file, and where the body starts in it, once all of a body is stored and verified; see
    /// `HotBody`.
    ///
    /// With it a hit needs no lock.
    let hotBody = Atomic<UInt64>(0)
    let hotLength = Atomic<Int64>(0)
    /// The regions read since the last look, one bit each.
    let regions = Atomic<UInt64>(0)
    let regionShift: Int64
    private let hugeBody: Int64
    /// Whether it is known that no promise about the body is to be kept or was broken; see
    /// ``awaitsDecision(promise:)``.
    let isSettled = Atomic<Bool>(false)
    /// Whether a request without an expectation has used the body.
    let isShared = Atomic<Bool>(false)
    /// Counts how often stored blocks were given up.
    let givenUp = Atomic<UInt64>(0)

    init(store: DiskStore, name: EntryName, record: Record, state: DiskEntryState) {
        self.store = store
        fileSystem = store.fileSystem
        self.name = name
        key = record.key
        generation = record.generation
        created = record.created
        regionShift = Self.regionShift(completeLength: record.completeLength)
        persistedUse = Atomic(record.lastUse)
        hugeBody = store.options.hugeBody
        runLater = store.options.runLater
        var state = state
        // The owner may discard blocks without a notice to guests.
        state.isTrusted = store.access.canWrite
        self.state = Guarded(state)
        refreshHotBody()
    }

    deinit {
        assertNoTierLock()
        let (files, bytes, isOrphan, succession) = state.withLock { state in
            let isOrphan = state.body != nil && !state.isPublished && !state.isDetached
            let bytes = state.detachedBytes + state.retiredBytes
            return (state.allFiles, bytes, isOrphan, state.succession)
        }
        var isSuccessor = false
        if case .waiting = succession { isSuccessor = true }
        guard isSuccessor || !files.isEmpty || bytes != 0 else { return }
        let giveUp: @Sendable () -> Void = { [fileSystem, store, name, generation, isSuccessor] in
            for file in files { fileSystem.close(file) }
            if isOrphan { store?.discardBody(of: name, generation: generation) }
            if isSuccessor {
                store?.state.withLock { $0.open.successors.sweep(name, generation: generation) }
            }
            if bytes != 0 { store?.releaseDetached(bytes, of: name) }
        }
        // The last lease may be given back on an event loop. A file that has no name any more gives
        // its blocks back as it is closed: a tenth of a second for each gigabyte.
        DiskStoreOptions.run(later: runLater, giveUp)
    }

    /// Closes the files of a recorded entry that nobody leases.
    func closeFiles() {
        let files = state.withLock { $0.isPublished ? $0.takeFiles() : [] }
        for file in files { fileSystem.close(file) }
    }

    /// The metadata as they were stored.
    package var metadata: [UInt8] { state.withLock { $0.metadata } }

    /// The length of the whole body; `nil` while unknown.
    package var completeLength: Int64? { state.withLock { $0.table.completeLength } }

    /// Whether the body does not fit beside what is pinned, so that it is never whole on disk.
    var isTooLong: Bool {
        guard let length = completeLength, let store, !isPinned else { return false }
        return DiskStore.cost(ofBody: length) > store.roomBesidePins
    }

    /// Whether blocks of the body may be punched out of its file, now or when more of it is stored.
    var mayBePunched: Bool { Self.mayBePunched(completeLength, hugeBody: hugeBody) }

    static func mayBePunched(_ completeLength: Int64?, hugeBody: Int64) -> Bool {
        completeLength ?? .max >= hugeBody
    }

    /// Whether every byte of the body is stored on disk.
    package var isComplete: Bool { state.withLock { $0.table.isComplete } }

    /// Whether the entry is protected from eviction.
    package var isPinned: Bool { state.withLock { $0.flags.contains(.pinned) } }

    /// Whether it was prefetched.
    ///
    /// It stays true; a use moves the entry out of the class that is evicted first.
    package var isPrefetched: Bool { state.withLock { $0.flags.contains(.prefetched) } }

    /// When it was last used as far as that was written down, in seconds since 1970; `nil` if it
    /// was not.
    package var writtenUse: Int64? {
        let use = persistedUse.load(ordering: .relaxed)
        return use > 0 ? Int64(clamping: use / 1_000_000_000) : nil
    }

    /// Whether a guest in another process, or another store of this one, has the body open just
    /// now; one call to the kernel.
    ///
    /// Guests cannot see whether the owner of the directory has it open.
    package var isOpenElsewhere: Bool {
        guard let file = state.withLock({ $0.body }) else { return false }
        do throws(FileSystemError) {
            return try fileSystem.isLocked(file)
        } catch {
            return false  // It cannot be told.
        }
    }

    /// Whether this generation was replaced or removed since the lease was taken.
    package var isSuperseded: Bool { state.withLock { $0.isDetached } }

    /// The store, for a write.
    ///
    /// - Throws: `.shutDown` after the store was released.
    func openStore() throws(CacheError) -> DiskStore {
        guard let store else {
            throw CacheError(.shutDown, "the cache directory has been closed")
        }
        return store
    }

    /// Whether bytes written now would be found again, by the last look at the directory.
    var isWritable: Bool {
        guard let store, !isSuperseded else { return false }
        return store.access.canWrite && store.lock.mayBeginWrite
    }

    /// The same after a look at the directory.
    func checkWritable() -> Bool {
        store?.look()
        return isWritable
    }

    /// Bytes per block: gaps start at its multiples.
    package var blockSize: Int64 { BlockTable.blockSize }

    /// The ranges stored on disk and in the unsealed ends of writers.
    package var storedRanges: ByteRangeSet {
        state.withLock { $0.storedRanges }
    }

    /// Whether every byte of the body is readable, on disk or in the unsealed ends of writers.
    var isWhole: Bool {
        if isComplete { return true }
        guard let length = completeLength else { return false }
        return storedRanges.gaps(in: 0..<length).ranges.isEmpty
    }

    /// The longest run of readable bytes around `offset`; `nil` if that byte is missing.
    package func storedRange(at offset: Int64) -> Range<Int64>? {
        state.withLock { $0.storedRange(at: offset) }
    }

    /// The first blocks missing in `range`, in a row.
    ///
    /// Whole blocks: the result may reach beyond `range` on both sides, but not beyond the complete
    /// length, so that what is fetched can be sealed. Unsealed ends of running writers count as
    /// missing, since they are lost if the writer is abandoned.
    package func nextGap(in range: Range<Int64>) -> Range<Int64>? {
        state.withLock { $0.table.nextGap(in: range) }
    }

    /// Counts as a use for the order of eviction.
    ///
    /// Every lookup does it already.
    package func markUsed() {
        clock.store(true, ordering: .relaxed)
        isUsed.store(true, ordering: .relaxed)
    }
}

/// Blocks reserved by one write or one discard.
struct BlockClaim: Sendable {
    let blocks: Range<Int>
    /// The number of the write, which holds the lock of that number; nil for a discard, which holds
    /// the lock of the name.
    let write: UInt64?
}

/// The mutable state of an open entry.
struct DiskEntryState: Sendable {
    var table: BlockTable
    var metadata: [UInt8]
    var flags: Record.Flags
    /// Where the body's bytes are; `nil` until the first block is written.
    var body: OpenFile?
    var bodyOffset: Int64 = 0
    /// Complete bodies are opened for reading only, until one turns out to be damaged.
    var isBodyWritable = false
    /// Where checksums are written in place, once needed.
    private(set) var record: OpenFile?
    /// Files that were replaced and may still be read from.
    var retired: [OpenFile] = []
    /// The bytes charged for those of them that have no name any more; freed with this object.
    var retiredBytes: Int64 = 0
    /// Whether the record that has the name is among them, and is to lose it.
    var hasRetiredRecord = false
    /// Whether the record file exists.
    var isPublished = false
    /// How often its files have changed, and how many of those changes are known to be on the
    /// medium.
    var changes = 0
    var syncedChanges = -1
    /// Whether the files have no name any more: replaced, removed, or evicted.
    var isDetached = false
    /// The bytes charged for the body if no slot of the index has it; freed with this object.
    var detachedBytes: Int64 = 0
    /// Whether the allocation of the files has to be read once more.
    var isUnsettled = false
    /// The ends of running writers.
    var tails: [PartialBlock] = []
    /// Whether blocks stay as they were verified unless this process gives them up.
    var isTrusted = true
    /// The regions that were read in last.
    var warm: UInt64 = 0
    /// Blocks being written or discarded.
    var claims: [BlockClaim] = []
    /// Bytes that the kernel is sending from the file; their blocks are not discarded.
    var leased: [Range<Int64>] = []
    /// The state of the body's file, for `DiskIndex.Slot.verification`.
    var verification: UInt64 = 0
    /// Below `entries`: the file of an entry that rested before; kept, as making it costs a hit.
    var dormantPath = ""
    /// Whether the entry has its name yet.
    var succession = SuccessionState.none
    /// Whether the body is what it has to be.
    var decision: BodyDecision

    init(table: BlockTable, metadata: [UInt8], flags: Record.Flags, isNew: Bool = false) {
        decision = BodyDecision(isNew: isNew)
        self.table = table
        self.metadata = metadata
        self.flags = flags
    }

    var isInline: Bool { flags.contains(.inline) }

    /// - Returns: the file that had checksums written to it before.
    @discardableResult
    mutating func setRecord(_ lock: borrowing NameLock, to file: OpenFile?) -> OpenFile? {
        defer { record = file }
        return record
    }

    /// How long the record is without its table.
    func headLength(of key: CacheKey) -> Int {
        Int(
            Record.tableOffset(
                keyLength: key.string.utf8.count,
                metadataLength: metadata.count
            )
        )
    }

    /// Takes another file, or none; the one before stays open for reads under way.
    mutating func setBody(_ file: OpenFile?, at offset: Int64 = 0) {
        if let body { retired.append(body) }
        body = file
        bodyOffset = offset
    }

    var allFiles: [OpenFile] {
        var files = retired
        if let body { files.append(body) }
        if let record { files.append(record) }
        return files
    }

    mutating func takeFiles() -> [OpenFile] {
        defer { (body, record, retired) = (nil, nil, []) }
        return allFiles
    }

    /// All readable bytes: blocks, and the ends of writers.
    var storedRanges: ByteRangeSet {
        var result = table.storedRanges
        for tail in tails where !tail.range.isEmpty {
            result.insert(tail.range)
        }
        return result
    }

    /// Readable bytes around `offset`: blocks, and the ends of writers that touch them.
    func storedRange(at offset: Int64) -> Range<Int64>? {
        var run = table.storedRun(containing: offset)
        for tail in tails where tail.range.contains(offset) && run == nil {
            run = tail.range
        }
        guard var run else { return nil }
        if run.lowerBound > 0, let before = table.storedRun(containing: run.lowerBound - 1) {
            run = before.lowerBound..<run.upperBound
        }
        for tail in tails where tail.range.lowerBound == run.upperBound {
            run = run.lowerBound..<tail.range.upperBound
        }
        return run
    }
}
