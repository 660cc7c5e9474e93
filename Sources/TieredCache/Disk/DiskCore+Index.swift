import SystemPackage

extension DiskCore {
    /// Builds the index from the snapshot and the directory, once; whoever comes meanwhile waits.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` if the directory cannot be listed; tried again at
    ///   the next call.
    func loadIndex(isCancelled: () -> Bool = { false }) throws(CacheError) {
        if state.withLock({ $0.isIndexLoaded }) { return }
        try loading.takeForAll { () throws(CacheError) in
            if state.withLock({ $0.isIndexLoaded }) { return }
            var built = try build(isCancelled: isCancelled)
            sweep(built.leftovers)
            built.index.orderByUse()
            state.withLock { state in
                state.index = built.index
                state.ledger.book(built.bytes)
                state.isIndexLoaded = true
            }
        }
        trimToLimit()
    }

    /// A directory may hold more than a limit that was lowered since.
    private func trimToLimit() {
        guard access.canWrite, state.withLock({ $0.ledger.bytes > $0.ledger.limit }),
            lock.beginWrite()
        else { return }
        defer { endWriting() }
        evict { _ in state.withLock { $0.ledger.excess(with: 0) } }
    }

    private struct Built {
        var index = DiskIndex()
        var bytes: Int64 = 0
        var leftovers = Scan()
    }

    /// Directory by directory, so that what was read is in memory only once.
    private func build(isCancelled: () -> Bool) throws(CacheError) -> Built {
        var built = Built()
        guard let entries else { return built }
        var snapshot = openSnapshot()
        defer { snapshot?.close() }
        for shard in try shards(in: entries) {
            if isCancelled() { throw CacheError(.cancelled, "the cache is being closed") }
            if let slots = snapshot?.slots(of: shard, at: modification(of: shard)) {
                add(slots, to: &built)
                continue
            }
            var scan = Scan()
            try self.scan(shard, into: &scan, upgrading: access.canWrite)
            add(scan.slots, to: &built)
            built.leftovers.damaged += scan.damaged
            built.leftovers.orphans += scan.orphans
        }
        if snapshot != nil { try consumeSnapshot() }
        return built
    }

    private func add(_ slots: [DiskIndex.Slot], to built: inout Built) {
        for slot in slots {
            built.index.append(slot)
            built.bytes += slot.bytes
        }
    }

    /// Removes what a crash left: safe before the first write, when nothing is under way.
    private func sweep(_ scan: Scan) {
        guard access.canWrite, let entries, lock.beginWrite() else { return }
        defer { endWriting() }
        let paths = scan.damaged.map(\.record) + scan.orphans.map(\.path)
        for path in paths {
            do throws(FileSystemError) {
                try unlinkIfPresent(path, in: entries)
            } catch {
                // Costs space until the next start; the other files are swept all the same.
                count(\.housekeepingErrors)
            }
        }
        state.withLock { $0.counters.damagedRecords += scan.damaged.count }
        for name in scan.damaged { didLose(DiskDeparture(cause: .corrupted, name: name)) }
    }
}
