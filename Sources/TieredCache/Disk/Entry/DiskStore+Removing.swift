import SystemPackage

@_spi(Benchmarks)
extension DiskStore {
    /// Removes a key's entry; leases on it stay readable.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func remove(_ key: CacheKey) throws(CacheError) -> Bool {
        try remove(key, because: .removed, sparesPinned: false)
    }

    /// Removes a key's entry and reports a cause.
    ///
    /// - Parameters:
    ///   - key: the key that identifies the entry.
    ///   - cause: why, for the statistics.
    ///   - sparesPinned: whether a pinned entry stays.
    /// - Returns: whether there was one, and it is gone.
    /// - Throws: `.notOwner`, `.localStorage`.
    func remove(
        _ key: CacheKey,
        because cause: DiskRemoval.Cause,
        sparesPinned: Bool
    ) throws(CacheError) -> Bool {
        try beginWriting()
        defer { endWriting() }
        let name = name(of: key)
        try prepareIndex(for: name)
        return try withLock(of: name) { (lock) throws(CacheError) in
            let open = state.withLock { $0.open.residents[name] }
            // What cannot be read just now may be pinned.
            let onDisk = try sparesPinned ? readRecord(of: name) : record(of: name)
            let isKeys = (open?.key ?? onDisk?.record.key) == key
            let isPinned = open?.isPinned ?? onDisk?.record.flags.contains(.pinned) ?? false
            guard !(isKeys && isPinned && sparesPinned) else { return false }
            // A damaged record of this name is removed as well.
            guard isKeys || (onDisk == nil && open == nil) else { return false }
            let hadSuccessor = giveUpSuccessor(lock)
            try removeFiles(lock)
            let cause = isKeys ? cause : .corrupted
            replace(&lock, with: nil, slot: nil, because: cause, of: key)
            return isKeys || hadSuccessor
        }
    }

    /// Removes every entry, pinned and damaged ones included; foreign files stay.
    ///
    /// One that cannot be removed does not stop the others; the first error is thrown at the end.
    public func removeAll() throws(CacheError) {
        try beginWriting()
        defer { endWriting() }
        try loadIndex()
        let names = state.withLock { state in
            Set(state.entries.index.all.map(\.name)).union(state.open.residents.all.map(\.name))
                .union(state.open.successors.names).union(state.entries.leaving.map(\.name))
        }
        var failure: CacheError?
        var removal = DiskRemoval(cause: .removed, entries: 0)
        for name in names {
            do throws(CacheError) {
                try withLock(of: name) { (lock) throws(CacheError) in
                    giveUpSuccessor(lock)
                    try removeFiles(lock)
                    let slot = replace(&lock, with: nil, slot: nil, because: nil)
                    removal.entries += slot == nil ? 0 : 1
                    removal.bytes += slot?.bytes ?? 0
                }
            } catch {
                failure = failure ?? error
            }
        }
        emptyQuarantine()
        // One for all: a log of a million lines would say no more.
        didLose(removal)
        if let failure { throw failure }
    }

    /// Evicts until at most `bytes` are allocated; pinned and leased entries stay.
    ///
    /// - Returns: the bytes allocated then: more than `bytes` if the entries that stay need more.
    @discardableResult
    public func trim(to bytes: Int64) throws(CacheError) -> Int64 {
        try beginWriting()
        defer { endWriting() }
        guard bytes >= 0 else {
            throw CacheError(.invalidArgument, "cannot trim to \(bytes) bytes")
        }
        try loadIndex()
        evict(.trimmed) { _ in state.withLock { $0.space.bytes - bytes } }
        return state.withLock { $0.space.bytes }
    }

    /// The entries and bytes stored, and the limit.
    public func usage() throws(CacheError) -> DiskUsage {
        try loadIndex()
        return state.withLock { state in
            DiskUsage(
                entries: state.entries.index.count,
                bytes: state.space.bytes,
                limit: state.space.limit
            )
        }
    }
}
