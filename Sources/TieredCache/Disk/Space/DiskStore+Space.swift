import Synchronization
import SystemPackage

// Room is reserved before anything is written (invariant 4): below the limit, and above the floor
// of free space on the volume.
extension DiskStore {
    /// The most that files may be allocated.
    var limit: Int64 { state.withLock { $0.space.limit } }

    /// Reserves room before a write, evicting for it if need be.
    ///
    /// - Parameters:
    ///   - count: the bytes.
    ///   - name: the entry that they are for; `nil` for other files.
    /// - Throws: ``CacheError/Code/localStorage`` when only pinned entries and those in use are
    ///   left, or when the volume has less free than it must keep.
    func reserve(_ count: Int64, for name: EntryName?) throws(CacheError) {
        LockChecker.assertMayTake(.loading)
        try prepareIndex(for: name)
        try reserveBelowLimit(count)
        do throws(CacheError) {
            try claimRoom()
            try checkVolume(count)
        } catch {
            endReservation(count)
            throw error
        }
    }

    private func reserveBelowLimit(_ count: Int64) throws(CacheError) {
        if !state.withLock({ $0.entries.isLoaded }) {
            // Victims are known only once the index is complete; until then the limit itself
            // counts.
            let admission = state.withLock { $0.space.admit(count, isLastTry: true) }
            if admission == .granted { return }
            try loadIndex()
        }
        var isLastTry = false
        var patience = Self.evictionBatch
        while true {
            switch state.withLock({ $0.space.admit(count, isLastTry: isLastTry) }) {
            case .granted:
                return
            case .tooLarge:
                throw tooLarge(count)
            case .needsRoom:
                guard !isLastTry else { throw hasNoRoom }
                // Others may take what becomes free: try again until there is nothing to wait for.
                isLastTry = !makeRoom(&patience) { store, _ in
                    store.state.withLock { $0.space.excess(with: count) }
                }
            }
        }
    }

    private var hasNoRoom: CacheError {
        let (limit, isClearing) = state.withLock { ($0.space.limit, $0.space.isClearing) }
        let reason = isClearing ? "until more is evicted" : "by what is pinned or in use"
        return CacheError(.localStorage, "the cache's limit of \(limit) bytes is taken \(reason)")
    }

    /// Gets the bytes freed so far, and returns how many more are needed.
    typealias Missing = @Sendable (_ store: DiskStore, _ freed: Int64) -> Int64

    /// Evicts for a write, a batch at most: below a lower limit there are thousands of entries to
    /// evict, and who waits for the write need not wait for them.
    ///
    /// What is missing then is evicted in the background.
    ///
    /// - Parameters:
    ///   - patience: how many entries the write still waits for.
    ///   - reason: as in ``evict(_:atMost:until:)``.
    ///   - missing: the same.
    /// - Returns: whether there is something to wait for: look again.
    @discardableResult
    private func makeRoom(
        _ patience: inout Int,
        _ reason: DiskEvictionReason? = nil,
        until missing: @escaping Missing
    ) -> Bool {
        guard patience > 0, !state.withLock({ $0.space.isClearing }) else { return false }
        let result = evict(reason, atMost: patience) { missing(self, $0) }
        patience -= result.count
        guard !result.isExhausted else { return false }
        if patience <= 0, missing(self, result.freed) > 0 {
            evictLater(reason, freed: result.freed, until: missing)
        }
        return !state.withLock { $0.space.isClearing }
    }

    /// Evicts in the background, unless that is being done already.
    func evictLater(
        _ reason: DiskEvictionReason? = nil,
        freed: Int64 = 0,
        until missing: @escaping Missing
    ) {
        guard state.withLock({ $0.space.beginClearing() }) else { return }
        evictBatchLater(reason, freed: freed, until: missing)
    }

    /// Evicts a batch, and then the next: a write that waits for its turn gets in between.
    private func evictBatchLater(
        _ reason: DiskEvictionReason?,
        freed: Int64,
        until missing: @escaping Missing
    ) {
        runLater { store in
            guard store.lock.beginWrite() else { return }
            defer { store.endWriting() }
            let result = store.evict(reason, atMost: Self.evictionBatch) {
                missing(store, freed + $0)
            }
            if !result.isExhausted, missing(store, freed + result.freed) > 0 {
                store.evictBatchLater(reason, freed: freed + result.freed, until: missing)
            } else {
                store.state.withLock { $0.space.endClearing() }
            }
        }
    }

    /// What pinned entries leave of the limit; negative where it was lowered below them.
    var roomBesidePins: Int64 {
        state.withLock { $0.space.limit - $0.entries.index.bytes(in: .pinned) }
    }

    /// Refuses a write that cannot fit beside the pinned entries, before anything is evicted for
    /// it.
    ///
    /// - Throws: ``CacheError/Code/localStorage``.
    func checkRoom(besidePins count: Int64) throws(CacheError) {
        let room = roomBesidePins
        guard count > room else { return }
        let limit = limit
        throw CacheError(
            .localStorage,
            "\(count) bytes do not fit beside \(limit - room) bytes that are pinned and stay: "
                + "the cache's limit is \(limit) bytes; raise it, or end a pin"
        )
    }

    func endReservation(_ count: Int64) {
        state.withLock { $0.space.release(count) }
    }

    /// Frees the charge of an entry without a name.
    func releaseDetached(_ bytes: Int64, of name: EntryName) {
        guard bytes != 0 else { return }
        state.withLock { $0.space.free(bytes, in: name.shardNumber) }
    }

    /// Registers that a file of a name is about to be opened without the lock of the name.
    func beginOpening(_ name: EntryName) {
        state.withLock { $0.space.beginOpening(in: name.shardNumber) }
    }

    /// Ends that: the file is closed, or belongs to an entry of the table.
    func endOpening(_ name: EntryName) {
        state.withLock { $0.space.endOpening(in: name.shardNumber) }
    }

    /// The cost of a body of `count` bytes with its record, without metadata.
    static func cost(ofBody count: Int64) -> Int64 {
        let blocks = BlockTable.blockCount(count)
        return cost(Int(clamping: count)) + cost(Int(clamping: 8 * blocks))
    }

    /// What `count` bytes can take on disk: whole blocks, and one for the file's own structures.
    static func cost(_ count: Int) -> Int64 {
        FileStatus.wholePages(Int64(count)) + 4096
    }

    /// Changes the limit.
    ///
    /// A lower limit takes effect at once, as far as entries may be evicted: pinned and leased ones
    /// may exceed it, and nothing is stored until they fit.
    ///
    /// - Parameter bytes: the most that files may be allocated; at least
    ///   ``DiskStoreOptions/minimumLimit``.
    /// - Throws: ``CacheError/Code/invalidArgument``, or ``CacheError/Code/notOwner``.
    package func setLimit(_ bytes: Int64) throws(CacheError) {
        try DiskStoreOptions.check(limit: bytes)
        try beginWriting()
        defer { endWriting() }
        try loadIndex()
        state.withLock { $0.space.limit = bytes }
        evict { _ in state.withLock { $0.space.excess(with: 0) } }
    }

    // MARK: The volume

    /// Keeps the floor of free space: evicts where that can make up for the missing bytes.
    ///
    /// If eviction cannot, because other programs took the room, nothing is evicted.
    private func checkVolume(_ count: Int64) throws(CacheError) {
        let now = timeSource.monotonicTime().nanoseconds
        if state.withLock({ $0.space.takeCheckedRoom(count, at: now) }) { return }
        let (missing, available) = try volumeShortage(now)
        guard missing > 0 else { return }
        try loadIndex()
        guard missing <= evictableBytes() else { throw belowFloor(available) }
        // A few more, so that the next write need not evict again.
        let slack = state.withLock { $0.space.bytes } / 20
        var patience = Self.evictionBatch
        makeRoom(&patience, .volumeFloor) { _, freed in
            freed < missing ? missing + slack - freed : 0
        }
        let (stillMissing, nowAvailable) = try volumeShortage(now)
        guard stillMissing <= 0 else { throw belowFloor(nowAvailable) }
    }

    /// Reads the free space of the volume: at most every 100 ms, or after a write of as many bytes
    /// as were free above the floor.
    ///
    /// - Returns: the bytes that are missing for all reserved writes, and the bytes available.
    private func volumeShortage(
        _ now: Int64
    ) throws(CacheError) -> (missing: Int64, available: Int64) {
        let reserved = state.withLock { $0.space.reserved }
        let available: Int64
        do throws(FileSystemError) {
            available = try fileSystem.volume(of: root).available
        } catch {
            throw CacheError(error, path: options.root)
        }
        let room = available - minimumFree - reserved
        state.withLock { $0.space.didCheckVolume(room, at: now) }
        return (-room, available)
    }

    private func belowFloor(_ available: Int64) -> CacheError {
        CacheError(
            .localStorage,
            "the volume of \(options.root) has \(available) bytes free, "
                + "less than must stay free; free disk space"
        )
    }
}
