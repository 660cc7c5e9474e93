import HTTPCaching
import Synchronization
import SystemPackage

/// The disk tier: keys, opaque metadata, and bodies in checksummed blocks, without HTTP.
///
/// docs/disk-format.md describes the files. Calls block on the disk unless their name says
/// otherwise, and may be made on any thread. A store works as soon as it is made; the first call
/// that lists or counts waits until the directory was read through once, one that writes for a
/// 256th of it.
@_spi(Benchmarks) public final class DiskStore: Sendable {
    // The store references the entries that are open; they reference it weakly. Neither `state` nor
    // an entry's state is held over a system call; locks of files are taken in the order of
    // `LockOrder`. A debug build traps otherwise.

    /// The options of a store.
    package typealias Options = DiskStoreOptions

    /// All that is decided under the one lock: what stands in one field agrees with the others at
    /// every instant (invariant 4).
    struct State {
        var entries = EntryIndex()
        var space: SpaceLedger
        var open = OpenEntries()
        var counters = DiskCounters()
    }

    let options: DiskStoreOptions
    let fileSystem: any FileSystem
    let timeSource: any TimeSource
    /// Whether this store may write.
    package let access: DiskAccess
    let root: OpenFile
    let entriesIfPresent: OpenFile?
    let staging: OpenFile?
    let lock: DirectoryLock
    let ownNames: OwnNames
    let minimumFree: Int64
    let names: KeyedLock
    let writes: KeyedLock
    /// The comparisons of this process, for what no record says.
    let compared = Guarded(ComparedBodies())
    let evictions: KeyedLock
    let loading: KeyedLock
    let shardLoads: KeyedLock
    let claims: KeyedLock
    let jobs: KeyedLock
    let state: Guarded<State>
    private let lastGeneration: Atomic<UInt64>
    private let lastWrite = Atomic<UInt64>(0)

    /// Opens a directory, or makes it.
    ///
    /// - Parameters:
    ///   - options: directory and limits.
    ///   - fileSystem: the machine's, unless a test has its own.
    ///   - timeSource: the machine's clocks, unless a test has its own.
    /// - Throws: ``CacheError/Code/invalidArgument`` for a limit below
    ///   ``DiskStoreOptions/minimumLimit``, and nothing is made then,
    ///   ``CacheError/Code/formatTooNew`` for a directory of a newer version (nothing is touched),
    ///   ``CacheError/Code/localStorage`` if the directory cannot be made or read.
    package init(
        _ options: Options,
        fileSystem: any FileSystem = POSIXFileSystem(mayBlockAnyThread: true),
        timeSource: any TimeSource = SystemTimeSource()
    ) throws(CacheError) {
        if !options.isReader { try Options.check(limit: options.limit) }
        let opened = try DiskDirectory(options, fileSystem: fileSystem)
        self.options = options.within(limit: opened.limit)
        self.fileSystem = fileSystem
        self.timeSource = timeSource
        access = opened.access
        root = opened.root
        entriesIfPresent = opened.entries
        staging = opened.staging
        lock = DirectoryLock(opened.lockFile)
        ownNames = opened.ownNames
        minimumFree = opened.minimumFree
        names = KeyedLock(.names, waiter: options.lockWaiter)
        writes = KeyedLock(.writes, waiter: options.lockWaiter)
        evictions = KeyedLock(.evictions, waiter: options.lockWaiter)
        loading = KeyedLock(.loading, waiter: options.lockWaiter)
        shardLoads = KeyedLock(.shards, waiter: options.lockWaiter)
        claims = KeyedLock(.claims, waiter: options.lockWaiter)
        jobs = KeyedLock(.jobs, waiter: options.lockWaiter)
        var state = State(
            space: SpaceLedger(
                limit: opened.limit,
                fixed: opened.fixedBytes,
                quarantined: opened.quarantinedBytes,
                claim: opened.claim
            )
        )
        let seed = options.generationSeed
        if let seed { state.entries.index = DiskIndex(seed: seed) }
        lastGeneration = Atomic(seed ?? UInt64.random(in: .min ... .max))
        self.state = Guarded(state)
    }

    deinit {
        if !lock.isClosed {
            LockChecker.withBlocking("who gives up an open store waits for that") { close() }
        }
        let snapshot = state.withLock { $0.entries.snapshot.file }
        LockChecker.withoutBlocking("directories, and a list of entries") {
            for file in [root, entriesIfPresent, staging, snapshot].compactMap({ $0 }) {
                fileSystem.close(file)
            }
        }
    }

    /// The counts of errors that failed no call.
    package var counters: DiskCounters { state.withLock { $0.counters } }

    /// Starts a new entry, which replaces the entry stored under its key.
    ///
    /// Leases on the old entry stay readable. The new one is visible at once, and on disk with its
    /// first whole block, or when a small body is complete. The new entry of a pinned key is
    /// pinned. A complete pinned entry is found until the new one is complete; until then only
    /// leases reach the new one, and it is lost with the last of them.
    ///
    /// - Parameters:
    ///   - key: the key that identifies the entry.
    ///   - metadata: at most 16 MiB, returned unchanged.
    ///   - completeLength: the length of the whole body, if it is known.
    ///   - entryClass: pinned, prefetched, or neither.
    /// - Returns: the entry, without a byte; see ``DiskEntry/beginWriting(at:)``.
    /// - Throws: ``CacheError/Code/notOwner``; ``CacheError/Code/localStorage``, also for a body
    ///   longer than the limit.
    package func makeEntry(
        for key: CacheKey,
        metadata: [UInt8],
        completeLength: Int64?,
        class entryClass: DiskEntryClass = []
    ) throws(CacheError) -> DiskEntry {
        try makeEntry(
            for: key,
            metadata: metadata,
            completeLength: completeLength,
            class: entryClass,
            succession: DiskSuccession()
        )
    }

    /// Stores a complete body: a small one in one file, in one call.
    ///
    /// ``DiskTier/store()`` looks whether the directory is still there; this does not.
    ///
    /// - Parameters:
    ///   - bytes: the whole body.
    ///   - key: the key that identifies the entry.
    ///   - metadata: at most 16 MiB, returned unchanged.
    ///   - entryClass: pinned, prefetched, or neither.
    /// - Returns: the entry, complete.
    /// - Throws: as ``makeEntry(for:metadata:completeLength:class:)`` does.
    @discardableResult
    package func store(
        _ bytes: UnsafeRawBufferPointer,
        for key: CacheKey,
        metadata: [UInt8],
        class entryClass: DiskEntryClass = []
    ) throws(CacheError) -> DiskEntry {
        try store(
            bytes,
            for: key,
            metadata: metadata,
            class: entryClass,
            succession: DiskSuccession()
        )
    }

    /// Closes the store and releases the directory; releasing the last reference does it otherwise.
    ///
    /// The next process that opens the directory owns it: at once or, if another thread is writing,
    /// after that write; ``DirectoryLock/released`` tells when. Leased entries stay readable;
    /// writing calls throw ``CacheError/Code/shutDown``. Closing twice does nothing.
    public func close() {
        look()
        writeRetired()
        persistUses(isLast: true)
        options.willClose?(self)
        giveUpSuccessors()
        letGoOfResidents()
        guard let file = lock.close() else { return }
        if !isLost {
            writeSnapshot()
            lowerClaim(file)
        }
        giveUp(file)
    }

    private func letGoOfResidents() {
        var residents = state.withLock { $0.open.close() }
        let leased = Set(residents.leasedNames())
        for entry in residents.all {
            // From here on another store may own the directory, and give up blocks.
            entry.invalidateVerification()
            // The entry does so by itself, but for a store that goes now.
            if entry.isUnrecorded, !leased.contains(entry.name) {
                withLock(of: entry.name) { lock in
                    discardBody(of: entry.name, generation: entry.generation)
                    entry.detach(lock, charged: nil)
                }
            }
        }
        withExtendedLifetime(residents) {}  // Closes files, so outside the lock.
    }

    private func giveUp(_ lockFile: OpenFile) {
        fileSystem.unlock(lockFile)
        fileSystem.close(lockFile)
        lock.released.complete(with: .success(()))
    }

    /// The directory of all entries.
    ///
    /// - Throws: `ENOENT` where there is none, as one may meet that only reads.
    var entries: OpenFile {
        get throws(FileSystemError) {
            guard let entriesIfPresent else {
                throw FileSystemError(.open, errno: .noSuchFileOrDirectory)
            }
            return entriesIfPresent
        }
    }

    /// Registers a write that is about to begin; ``endWriting()`` has to follow.
    ///
    /// - Parameter looks: whether to look at the directory first; needless where `DiskTier` has just
    ///   done so, or where nothing goes to it before another write begins.
    /// - Throws: `.notOwner`, `.localStorage`, or `.shutDown` once the store is closed.
    func beginWriting(looks: Bool = true) throws(CacheError) {
        try requireOwner()
        if looks { look() }
        guard lock.beginWrite() else {
            if isLost { throw lostDirectory }
            throw CacheError(.shutDown, "the cache directory \(options.root) has been closed")
        }
    }

    func endWriting() {
        if let file = lock.endWrite() { giveUp(file) }
    }

    func requireOwner() throws(CacheError) {
        switch access {
        case .owner:
            return
        case .guest(let owner):
            throw CacheError(.notOwner, "\(owner.name) owns the cache directory \(options.root)")
        case .readOnly(let error):
            throw error
        }
    }

    func checkSizes(
        _ key: CacheKey,
        metadata: Int,
        completeLength: Int64?
    ) throws(CacheError) {
        let keyLength = key.string.utf8.count
        guard keyLength <= Record.maximumFieldLength else {
            throw CacheError(.invalidArgument, "a key of \(keyLength) bytes is too long")
        }
        guard metadata <= Record.maximumFieldLength else {
            throw CacheError(.invalidArgument, "metadata of \(metadata) bytes is too long")
        }
        guard let completeLength else { return }
        guard completeLength >= 0 else {
            throw CacheError(.invalidArgument, "a complete length of \(completeLength)")
        }
        try checkEnd(completeLength)
    }

    /// Refuses a body that reaches so far.
    ///
    /// For a body of unknown length the highest offset decides the length of the table: a single
    /// block far behind all others must not take more than the limit of the cache.
    func checkEnd(_ offset: Int64, adding count: Int = 0) throws(CacheError) {
        let (end, overflow) = offset.addingReportingOverflow(Int64(count))
        guard !overflow, end <= min(limit, BlockTable.maximumLength) else {
            throw tooLarge(overflow ? .max : end)
        }
    }

    func tooLarge(_ bytes: Int64) -> CacheError {
        let most = min(limit, BlockTable.maximumLength)
        return CacheError(
            .localStorage,
            "a body of \(bytes) bytes does not fit into the cache's limit of \(most)"
        )
    }

    /// A number that was not used before: a mixed counter with a random start (SplitMix64).
    func nextGeneration() -> UInt64 {
        let step: UInt64 = 0x9E37_79B9_7F4A_7C15
        let counter = lastGeneration.wrappingAdd(step, ordering: .relaxed).newValue
        var mixed = (counter ^ counter >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// The number of a write of blocks, by which others wait for it.
    func nextWrite() -> UInt64 {
        lastWrite.wrappingAdd(1, ordering: .relaxed).newValue
    }

    func name(of key: CacheKey) -> EntryName { EntryName(digest: options.digest(key)) }

    func error(_ error: FileSystemError, naming name: String) -> CacheError {
        CacheError(error, path: options.root.appending(name))
    }

    func entryError(_ error: FileSystemError, naming name: EntryName) -> CacheError {
        CacheError(error, path: options.root.appending("entries").appending(name.record))
    }

    /// Runs `body`, and names the entry in what it throws.
    func naming<Result>(
        _ name: EntryName,
        body: () throws(FileSystemError) -> Result
    ) throws(CacheError) -> Result {
        do throws(FileSystemError) {
            return try body()
        } catch {
            throw entryError(error, naming: name)
        }
    }

    func count(_ counter: any WritableKeyPath<DiskCounters, Int> & Sendable) {
        state.withLock { $0.counters[keyPath: counter] += 1 }
    }

    /// Runs an optional operation; counts its failure.
    ///
    /// - Returns: whether it was done.
    @discardableResult
    func attempt(_ body: () throws(FileSystemError) -> Void) -> Bool {
        do throws(FileSystemError) {
            try body()
            return true
        } catch {
            count(\.housekeepingErrors)
            return false
        }
    }

    /// Nanoseconds since 1970, as recency is kept.
    func useTime() -> UInt64 { UInt64(clamping: timeSource.wallTime().nanoseconds) }
}

/// Counts of evictions, and of errors that failed no call.
package struct DiskCounters: Hashable, Sendable {
    /// Blocks that did not match their checksum, or could not be read; each became a gap.
    package var damagedBlocks = 0
    /// Records that were found damaged.
    package var damagedRecords = 0
    /// Reads that failed with an I/O error.
    package var readErrors = 0
    /// Entries evicted.
    package var evictions = 0
    /// How often a huge entry lost blocks.
    package var shortened = 0
    /// Files that could not be removed, and uses that could not be written.
    package var housekeepingErrors = 0
}
