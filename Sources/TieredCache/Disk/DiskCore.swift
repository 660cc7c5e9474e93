import HTTPCaching
import Synchronization
import SystemPackage

/// What a store and its entries share: directories, the index, the ledger, who is open.
///
/// The store lets go of the open entries when it goes; an entry keeps this object, so that a lease
/// outlives the store. Neither `state` nor an entry's state is held over a system call; the locks of
/// files are ordered by ``LockOrder``.
final class DiskCore: Sendable {
    struct State {
        var residents = ResidentTable()
        var successors = SuccessorTable()
        var index = DiskIndex()
        var ledger: SpaceLedger
        var counters = DiskCounters()
        /// Counts, per directory, what made a lookup's file an old one.
        var changes = [UInt32](repeating: 0, count: 256)
        /// Lookups per directory that may have a file open which is being removed, and what such files
        /// were booked with: it is free when those lookups have ended.
        var openings = [Int](repeating: 0, count: 256)
        var limbo = [Int64](repeating: 0, count: 256)
        var hasShard = [Bool](repeating: false, count: 256)
        /// Whose records were met and found damaged; they have to go, whatever comes in their place.
        var damaged: Set<EntryName> = []
        /// Which of the 256 directories are in the index.
        var loaded = [Bool](repeating: false, count: 256)
        /// Which of them have entries of which nothing but the files is known.
        var isGuessed = [Bool](repeating: false, count: 256)
        /// Whether all are, in the order of their use.
        var isIndexLoaded = false
        /// What is booked for what may be in directories that are not in the index yet.
        var surplus: Int64 = 0
        /// What everything here may be allocated at most, as LOCK says; `nil` where it says nothing.
        var claim: Int64?
        var snapshot = IndexSnapshot.State()
        /// When entries were used whose directories are not in the index yet; so many at most that it
        /// does not matter.
        var earlyUses: [EntryName: UInt64] = [:]
        var isClosed = false
        /// What is allocated in `quarantine`.
        var quarantined: Int64 = 0
        var generation: UInt64
        var lastFold: Int64 = 0
        /// Until when, and for how many bytes, the volume need not be asked for its room.
        var roomCheckedUntil: Int64 = .min
        var roomLeft: Int64 = 0
    }

    let options: DiskStoreOptions
    let fileSystem: any FileSystem
    let timeSource: any TimeSource
    let access: DiskAccess
    let root: OpenFile
    let entries: OpenFile?
    let staging: OpenFile?
    let lock: DirectoryLock
    let ownNames: OwnNames
    let minimumFree: Int64
    let names: KeyedLock
    let writes: KeyedLock
    let creations: KeyedLock
    let evictions: KeyedLock
    let loading: KeyedLock
    let shardLoads: KeyedLock
    let claims: KeyedLock
    let jobs: KeyedLock
    let state: Guarded<State>
    private let lastWrite = Atomic<UInt64>(0)

    init(_ opened: DiskDirectory, _ options: DiskStoreOptions, timeSource: any TimeSource) {
        self.options = options
        self.timeSource = timeSource
        fileSystem = opened.fileSystem
        access = opened.access
        root = opened.root
        entries = opened.entries
        staging = opened.staging
        lock = DirectoryLock(opened.lockFile)
        ownNames = opened.ownNames
        minimumFree = opened.minimumFree
        names = KeyedLock(.names, waiter: options.lockWaiter)
        writes = KeyedLock(.writes, waiter: options.lockWaiter)
        creations = KeyedLock(.creations, waiter: options.lockWaiter)
        evictions = KeyedLock(.evictions, waiter: options.lockWaiter)
        loading = KeyedLock(.loading, waiter: options.lockWaiter)
        shardLoads = KeyedLock(.shards, waiter: options.lockWaiter)
        claims = KeyedLock(.claims, waiter: options.lockWaiter)
        jobs = KeyedLock(.jobs, waiter: options.lockWaiter)
        var ledger = SpaceLedger(limit: options.limit)
        ledger.book(opened.fixedBytes)
        ledger.book(opened.claim ?? 0)
        let seed = options.generationSeed ?? UInt64.random(in: .min ... .max)
        var state = State(ledger: ledger, generation: seed)
        if let seed = options.generationSeed { state.index = DiskIndex(seed: seed) }
        state.claim = opened.claim
        state.surplus = opened.claim ?? 0
        state.quarantined = opened.quarantinedBytes
        self.state = Guarded(state)
    }

    deinit {
        if let file = lock.close() { giveUp(file) }
        let snapshot = state.withLock { $0.snapshot.file }
        for file in [root, entries, staging, snapshot].compactMap({ $0 }) {
            fileSystem.close(file)
        }
    }

    /// Lets go of everything that is open and not leased, and of the directory.
    func close() {
        look()
        persistUses(isLast: true)
        options.willClose?(self)
        giveUpSuccessors()
        let residents = state.withLock { state in
            state.isClosed = true
            let residents = state.residents
            state.residents = ResidentTable()
            return residents
        }
        // From here on another store may own the directory, and give up blocks.
        for entry in residents.all { entry.distrust() }
        withExtendedLifetime(residents) {}  // Closes files, so outside the lock.
        guard let file = lock.close() else { return }
        if !isLost {
            writeSnapshot()
            lowerClaim(file)
        }
        giveUp(file)
    }

    private func giveUp(_ lockFile: OpenFile) {
        fileSystem.unlock(lockFile)
        fileSystem.close(lockFile)
    }

    /// Says that something is about to be written; ``endWriting()`` has to follow.
    ///
    /// - Throws: `.notOwner`, `.localStorage`, or `.shutDown` once the store is closed.
    func beginWriting() throws(CacheError) {
        try requireOwner()
        look()
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
            let name = owner.map { "process \($0)" } ?? "another process"
            throw CacheError(.notOwner, "\(name) owns the cache directory \(options.root)")
        case .readOnly(let error):
            throw error
        }
    }

    func checkSizes(metadata: Int, completeLength: Int64?) throws(CacheError) {
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
    /// Of one whose length is not known, where it reaches decides how long its table becomes: a single
    /// block far behind all others must not take more than the whole cache may.
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
        let counter = state.withLock { state in
            state.generation &+= 0x9E37_79B9_7F4A_7C15
            return state.generation
        }
        var mixed = (counter ^ counter >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// The number of a write of blocks, by which others wait for it.
    func nextWrite() -> UInt64 {
        lastWrite.wrappingAdd(1, ordering: .relaxed).newValue
    }

    func name(of key: CacheKey) -> EntryName { EntryName(digest: options.digest(key)) }

    func error(_ error: FileSystemError, _ name: String) -> CacheError {
        CacheError(error, options.root.appending(name))
    }

    func entryError(_ error: FileSystemError, _ name: EntryName) -> CacheError {
        CacheError(error, options.root.appending("entries").appending(name.record))
    }

    func count(_ counter: any WritableKeyPath<DiskCounters, Int> & Sendable) {
        state.withLock { $0.counters[keyPath: counter] += 1 }
    }

    /// Nanoseconds since 1970, as recency is kept.
    func useTime() -> UInt64 { UInt64(clamping: timeSource.wallTime().nanoseconds) }
}

/// What went wrong below a store without failing anybody.
public struct DiskCounters: Hashable, Sendable {
    /// Blocks that did not match their checksum, or could not be read; each became a gap.
    public var damagedBlocks = 0
    /// Records that were found damaged.
    public var damagedRecords = 0
    /// Reads that the disk failed.
    public var readErrors = 0
    /// Entries that had to leave.
    public var evictions = 0
    /// Times that a huge entry had to give up blocks.
    public var shortened = 0
    /// Files that could not be removed, or uses that could not be written down.
    public var housekeepingErrors = 0
}
