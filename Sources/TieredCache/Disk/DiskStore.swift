public import SystemPackage

/// The disk tier: keys, opaque metadata, and bodies in checksummed blocks; knows nothing of HTTP.
///
/// What is on disk is described in docs/disk-format.md. Calls block on the disk unless their name says
/// otherwise, and may be made on any thread. A store works as soon as it is made; the first call that
/// lists or counts waits until the directory was read through once, one that writes for a 256th of it.
public final class DiskStore: Sendable {
    /// What a store is made with.
    public typealias Options = DiskStoreOptions

    let core: DiskCore

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
    public init(
        _ options: Options,
        fileSystem: any FileSystem = POSIXFileSystem(),
        timeSource: any TimeSource = SystemTimeSource()
    ) throws(CacheError) {
        if !options.isReader { try Options.check(limit: options.limit) }
        var options = options
        options.inlineLimit = min(max(options.inlineLimit, 0), Int(BlockTable.blockSize))
        options.maximumOpenEntries = max(options.maximumOpenEntries, 1)
        let directory = try DiskDirectory(options, fileSystem)
        options.limit = directory.limit
        core = DiskCore(directory, options, timeSource: timeSource)
    }

    deinit {
        core.close()
    }

    /// Whether this store may write.
    public var access: DiskAccess { core.access }

    /// Whether the directory, or its lock, was seen to be gone: nothing is written any more.
    var isLost: Bool { core.isLost }

    /// What went wrong without failing anybody.
    public var counters: DiskCounters { core.state.withLock { $0.counters } }

    /// A lease on a key's entry; `nil` if there is none.
    ///
    /// Goes straight to the file by name: needs no index.
    ///
    /// - Parameters:
    ///   - key: whose entry it is.
    ///   - isUse: whether the entry is wanted for its bytes, which moves it away from eviction and ends
    ///     its time as a prefetched one. Looking at what is held, and prefetching, is none.
    /// - Returns: the lease.
    /// - Throws: ``CacheError/Code/localStorage`` if the disk fails.
    public func entry(
        for key: CacheKey,
        isUse: Bool = true
    ) throws(CacheError) -> DiskEntry? {
        try core.lookup(key, isUse: isUse)
    }

    /// Looks up a key if that needs no disk.
    ///
    /// Never blocks: open entries answer from memory, others if kernel caches have what is needed.
    ///
    /// - Parameters:
    ///   - key: whose entry it is.
    ///   - isUse: as in ``entry(for:isUse:)``.
    /// - Returns: the lease, or that the disk has to be waited for.
    public func entryWithoutBlocking(
        for key: CacheKey,
        isUse: Bool = true
    ) -> NonBlocking<DiskEntry?> {
        core.lookupWithoutBlocking(key, isUse: isUse)
    }

    /// Starts a new entry, which takes the key from what is stored under it.
    ///
    /// Those who hold the old entry read on. The new one is visible at once, and on disk with its
    /// first whole block, or when a small body is complete. What is pinned hands its pin on; if it is
    /// complete as well it is found until the new entry is complete, which is only known to those that
    /// hold it until then, and lost with the last of them.
    ///
    /// - Parameters:
    ///   - key: whose entry it is.
    ///   - metadata: at most 16 MiB, given back as it is.
    ///   - completeLength: the length of the whole body, if it is known.
    ///   - entryClass: pinned, prefetched, or neither.
    /// - Returns: the entry, without a byte; see ``DiskEntry/beginFill(at:)``.
    /// - Throws: ``CacheError/Code/notOwner``; ``CacheError/Code/localStorage``, also for a body longer
    ///   than the limit.
    public func makeEntry(
        for key: CacheKey,
        metadata: [UInt8],
        completeLength: Int64?,
        class entryClass: DiskEntryClass = []
    ) throws(CacheError) -> DiskEntry {
        try core.makeEntry(
            for: key,
            metadata: metadata,
            completeLength: completeLength,
            class: entryClass
        )
    }

    /// The same, with how it follows what has the name.
    ///
    /// - Throws: also `.notStorable`.
    func makeEntry(
        for key: CacheKey,
        metadata: [UInt8],
        completeLength: Int64?,
        class entryClass: DiskEntryClass,
        _ succession: DiskSuccession
    ) throws(CacheError) -> DiskEntry {
        try core.makeEntry(
            for: key,
            metadata: metadata,
            completeLength: completeLength,
            class: entryClass,
            succession
        )
    }

    /// Sets room aside for a body that is about to come.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` where there is not so much.
    func promiseRoom(_ count: Int64, for key: CacheKey) throws(CacheError) -> RoomPromise {
        try core.promiseRoom(count, for: key)
    }

    /// The next generation of a key's complete pinned entry, while it is brought or read.
    func successor(of key: CacheKey) -> DiskEntry? { core.successor(of: key) }

    /// Stores a complete body.
    ///
    /// - Parameters:
    ///   - bytes: the whole body.
    ///   - key: whose it is.
    ///   - metadata: at most 16 MiB, given back as it is.
    ///   - entryClass: pinned, prefetched, or neither.
    /// - Returns: the entry, complete.
    /// - Throws: as ``makeEntry(for:metadata:completeLength:class:)`` does.
    @discardableResult
    public func store(
        _ bytes: UnsafeRawBufferPointer,
        for key: CacheKey,
        metadata: [UInt8],
        class entryClass: DiskEntryClass = []
    ) throws(CacheError) -> DiskEntry {
        try core.store(bytes, for: key, metadata: metadata, class: entryClass)
    }

    /// The same for what must not replace anything that is pinned.
    ///
    /// - Throws: also `.notStorable`.
    func storeSparingPinned(
        _ bytes: UnsafeRawBufferPointer,
        for key: CacheKey,
        metadata: [UInt8],
        class entryClass: DiskEntryClass
    ) throws(CacheError) {
        let succession = DiskSuccession(sparesPinned: true)
        _ = try core.store(bytes, for: key, metadata: metadata, class: entryClass, succession)
    }

    /// Removes a key's entry; those who hold it read on.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func remove(_ key: CacheKey) throws(CacheError) -> Bool {
        try core.remove(key)
    }

    /// The same, with what is to be said about it.
    func remove(
        _ key: CacheKey,
        because cause: DiskDeparture.Cause,
        sparesPinned: Bool
    ) throws(CacheError) -> Bool {
        try core.remove(key, because: cause, sparesPinned: sparesPinned)
    }

    /// Sets an entry aside whose body is not what was promised; see ``DiskFinding/Kind/quarantined``.
    ///
    /// - Returns: false if it was removed instead, or has been replaced, so that nothing was done.
    func quarantine(_ entry: DiskEntry) throws(CacheError) -> Bool {
        try core.quarantine(entry)
    }

    /// Removes what was set aside of a key.
    func releaseQuarantine(of key: CacheKey) { core.releaseQuarantine(of: key) }

    /// Removes all entries, pinned ones too; files that are not ours stay.
    public func removeAll() throws(CacheError) {
        try core.removeAll()
    }

    /// Pins what a key stands for, or ends that.
    ///
    /// - Returns: whether there is anything.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(CacheError) -> Bool {
        while let entry = try entry(for: key, isUse: false) {
            if entry.isPinned != isPinned || successor(of: key) != nil {
                try entry.setPinned(isPinned)
            } else if isPinned, access.canWrite {
                // The pin before may have failed to reach the medium.
                try core.syncIfPinned(entry)
            }
            // What has taken the name meanwhile has not heard of it.
            if !entry.isSuperseded { return true }
        }
        return false
    }

    /// Evicts until at most `bytes` are allocated; spares what is pinned and what is in use.
    ///
    /// - Returns: what is allocated then: more than `bytes` if what was spared is.
    @discardableResult
    public func trim(to bytes: Int64) throws(CacheError) -> Int64 {
        try core.trim(to: bytes)
    }

    /// Changes the limit.
    ///
    /// A lower one is made true at once, as far as entries may leave: what is pinned or in use may
    /// stay above it, and nothing is stored until it fits.
    ///
    /// - Parameter bytes: the most that files may be allocated; at least
    ///   ``DiskStoreOptions/minimumLimit``.
    /// - Throws: ``CacheError/Code/invalidArgument``, or ``CacheError/Code/notOwner``.
    public func setLimit(_ bytes: Int64) throws(CacheError) {
        try core.setLimit(bytes)
    }

    /// Every entry that is on disk, in no order.
    ///
    /// - Parameter report: gets what is wrong with each entry that is left out, since the disk does not
    ///   give its record.
    /// - Returns: those that can be read.
    /// - Throws: ``CacheError/Code/localStorage`` if the directory cannot be read.
    public func list(
        report: (CacheError) -> Void = { _ in }
    ) throws(CacheError) -> [DiskEntrySummary] {
        try core.list(report: report)
    }

    /// How much is stored.
    public func usage() throws(CacheError) -> DiskUsage {
        try core.usage()
    }

    /// Reads everything that is held and compares it with its checksums.
    ///
    /// - Parameters:
    ///   - repair: makes damaged blocks gaps, on disk too, and removes damaged records and bodies without
    ///     one. What the disk fails to give stays.
    ///   - report: gets each finding as it is made, on the calling thread; also files that are not
    ///     the cache's, which are left alone and not counted.
    /// - Returns: what was found and done.
    /// - Throws: ``CacheError/Code/notOwner`` where a guest would repair.
    public func verify(
        repair: Bool,
        report: (DiskFinding) -> Void = { _ in }
    ) throws(CacheError) -> DiskVerification {
        try core.verify(repair: repair, report)
    }

    /// A file that equals the complete body of an entry.
    ///
    /// A small body kept in its record is written out first. The path is good while the entry is
    /// leased.
    ///
    /// - Returns: `nil` if there is no entry, or not all of it is held.
    public func bodyPath(for key: CacheKey) throws(CacheError) -> FilePath? {
        guard let entry = try core.lookup(key) else { return nil }
        return try core.bodyPath(of: entry)
    }

    /// Reads the directory through; call it on an I/O thread after opening.
    ///
    /// - Parameter isCancelled: asked before each of 256 directories; true ends the call, and what is
    ///   missing in the index is read when it is needed.
    /// - Throws: ``CacheError/Code/cancelled``, or ``CacheError/Code/localStorage`` if the directory
    ///   cannot be read.
    public func loadIndex(
        isCancelled: @Sendable () -> Bool = { false }
    ) throws(CacheError) {
        try core.loadIndex(isCancelled: isCancelled)
    }

    /// Writes down which entries were used; otherwise done now and then, and when the store goes.
    public func flush() {
        core.persistUses()
    }

    /// Gives up the directory, which the last release of the store does otherwise.
    ///
    /// Whoever opens it next owns it: at once, or, where another thread is writing, when that write
    /// has ended. Entries that are still leased can be read on; what would write throws
    /// ``CacheError/Code/shutDown``. Closing twice does nothing.
    public func close() {
        core.close()
    }
}
