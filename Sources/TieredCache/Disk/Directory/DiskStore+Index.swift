import Synchronization
import SystemPackage

// The index is built directory by directory: by a task in the background, and by a write to a
// directory that the task has not reached. So a write waits for one of 256, not for all. Until all
// are there the claim says how much they take at most, see `DiskStore+Claiming`.
@_spi(Benchmarks)
extension DiskStore {
    /// Reads the directory through, once; call it on an I/O thread after opening.
    ///
    /// - Parameter isCancelled: asked before each of 256 directories; true ends the call, and what
    ///   is missing in the index is read when it is needed.
    /// - Throws: ``CacheError/Code/cancelled``, or ``CacheError/Code/localStorage`` if the
    ///   directory cannot be read; tried again at the next call.
    public func loadIndex(
        isCancelled: @Sendable () -> Bool = { false }
    ) throws(CacheError) {
        if state.withLock({ $0.entries.isLoaded }) { return }
        // `loading` is taken before `shardLoads` and `claims`, and these before `state`.
        try loading.withLock { () throws(CacheError) in
            if state.withLock({ $0.entries.isLoaded }) { return }
            openSnapshot()
            try loadShards(isCancelled)
            placeByUse()
            try consumeSnapshot()
            didLoadIndex()
        }
        trimToLimit()
        lowerClaim()
    }

    /// Loads the part of the index that a write needs: its own directory, or all of them if no
    /// claim bounds the others.
    ///
    /// - Parameter name: the entry that is written; `nil` for other files.
    /// - Throws: as ``loadIndex(isCancelled:)`` does.
    func prepareIndex(for name: EntryName?) throws(CacheError) {
        let (isReady, isBounded) = state.withLock { state in
            let isKnown = name.map { state.entries.hasLoaded($0.shardNumber) } ?? true
            let isBounded = state.space.claim != nil
            let isReady = isBounded && isKnown && (name == nil || state.entries.snapshot.isConsumed)
            return (state.entries.isLoaded || isReady, isBounded)
        }
        if isReady { return }
        guard isBounded, let name else { return try loadIndex() }
        openSnapshot()
        // From now on it does not know everything any more.
        try consumeSnapshot()
        var snapshot = snapshotReader()
        try loadShard(name.shardNumber, mayExist: true, snapshot: &snapshot)
    }

    /// A directory may hold more than a limit that was lowered since.
    private func trimToLimit() {
        guard access.canWrite, state.withLock({ $0.space.bytes > $0.space.limit }) else { return }
        evictLater { store, _ in store.state.withLock { $0.space.excess(with: 0) } }
    }

    private func loadShards(_ isCancelled: () -> Bool) throws(CacheError) {
        let present = try shards()
        var snapshot = snapshotReader()
        var isFirst = true
        for shard in 0..<256 {
            if isCancelled() { throw CacheError(.cancelled, "the cache is being closed") }
            let isPresent = present.contains(shard)
            let count = try loadShard(shard, mayExist: isPresent, snapshot: &snapshot)
            if isPresent, isFirst {
                isFirst = false
                // Names are spread evenly, so one directory tells how many there are in all;
                // growing by and by would keep hits waiting.
                state.withLock { $0.entries.index.reserve(count * present.count / 20 * 21) }
            }
        }
    }

    /// Takes one directory into the index, once.
    ///
    /// - Parameters:
    ///   - shard: its number.
    ///   - mayExist: whether there is anything to look for.
    ///   - snapshot: the snapshot, which may have the directory.
    /// - Returns: how many entries came with it.
    /// - Throws: ``CacheError/Code/localStorage`` if it cannot be read.
    @discardableResult
    private func loadShard(
        _ shard: Int,
        mayExist: Bool,
        snapshot: inout SnapshotReader?
    ) throws(CacheError) -> Int {
        try shardLoads.withLock(of: UInt64(shard)) { () throws(CacheError) in
            if state.withLock({ $0.entries.hasLoaded(shard) }) { return 0 }
            var scan = Scan()
            if mayExist {
                if let known = slots(of: shard, in: &snapshot) {
                    scan.slots = known
                } else {
                    try self.scan(shard, into: &scan, upgrading: access.canWrite)
                }
            }
            sweep(scan)
            let slots = scan.slots + scan.withheld
            state.withLock { state in
                state.entries.add(slots, of: shard)
                state.space.didRead(slots.reduce(0) { $0 + $1.bytes })
            }
            return slots.count
        }
    }

    /// Gives all entries their places in the order of use: a few at a time, as hits take the same
    /// lock.
    private func placeByUse() {
        var entries: [DiskIndex.Unplaced] = []
        var start: Int32 = 0
        while let some = state.withLock({ $0.entries.index.unplaced(in: start..<(start + 16_384)) })
        {
            entries += some
            start += 16_384
        }
        DiskIndex.sort(&entries)
        for first in stride(from: 0, to: entries.count, by: 4096) {
            let some = entries[first..<min(first + 4096, entries.count)]
            state.withLock { $0.entries.index.placeAsOlder(some) }
        }
    }

    /// The index is complete: the part of the claim for unread directories is released.
    private func didLoadIndex() {
        let file = state.withLock { state in
            state.space.didReadAll()
            // Its name went before; its blocks are free once the descriptor below is closed.
            state.space.charge(-state.entries.snapshot.size)
            return state.entries.didLoadAll()
        }
        if let file { fileSystem.close(file) }
    }

    /// Removes the leftovers of a crash; safe before the first write to a directory.
    private func sweep(_ scan: Scan) {
        guard !scan.damaged.isEmpty || !scan.orphans.isEmpty else { return }
        guard access.canWrite, lock.beginWrite() else { return }
        defer { endWriting() }
        let pinned = Set(scan.slots.lazy.filter { $0.queue == .pinned }.map(\.name))
        // What cannot be removed costs space until the next start; the others are swept all the
        // same.
        for name in scan.damaged {
            attempt { () throws(FileSystemError) in
                try fileSystem.unlinkIfPresent(name.record, in: entries)
            }
        }
        for body in scan.orphans {
            attempt { () throws(FileSystemError) in
                try sweep(body, isPinned: pinned.contains(body.name))
            }
        }
        state.withLock { $0.counters.damagedRecords += scan.damaged.count }
        for name in scan.damaged { didLose(DiskRemoval(cause: .corrupted, name: name)) }
    }

    /// Removes a body without a record.
    ///
    /// If the entry of its name is pinned, that entry is synced first: the body may be of the
    /// generation before, which a power cut would bring back otherwise.
    func sweep(_ body: EntryBody, isPinned: Bool) throws(FileSystemError) {
        if isPinned { try syncNames(of: body.name) }
        try fileSystem.unlinkIfPresent(body.path, in: entries)
    }
}
