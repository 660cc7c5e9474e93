/// A removal from the disk and its cause, for statistics and events.
struct DiskRemoval: Sendable {
    enum Cause: Sendable {
        /// It was stale, and another response took its place.
        case expired
        /// Room was needed.
        case evicted(DiskEvictionReason)
        /// A newer body took its place.
        case replaced
        /// A caller removed it.
        case removed
        /// The files were damaged.
        case corrupted
    }

    var cause: Cause
    /// The name of the entry; nil for the removal of all.
    var name: EntryName?
    /// The key, where it was known without another look at the disk.
    var key: CacheKey?
    /// The bytes freed.
    var bytes: Int64 = 0
    var entries = 1
    /// Whether the entry stays, with fewer blocks.
    var isPartial = false
}

extension DiskStore {
    /// Reports a removal to the history and the counters.
    ///
    /// The lock of a name may be held here: they would trap if they took an earlier one of
    /// ``LockOrder``.
    func didLose(_ removal: DiskRemoval) {
        options.didLeave?(removal)
    }

    /// Counts a block that did not match its checksum, or could not be read.
    func didLose(block: Int, of entry: DiskEntry) {
        count(\.damagedBlocks)
        didLose(
            DiskRemoval(
                cause: .corrupted,
                name: entry.name,
                key: entry.key,
                bytes: BlockTable.blockSize,
                isPartial: true
            )
        )
    }

    /// Counts a record that was met and is none.
    func didMeetDamagedRecord(_ name: EntryName, of key: CacheKey) {
        state.withLock { state in
            state.counters.damagedRecords += 1
            state.entries.didMeetDamaged(name)
        }
        didLose(DiskRemoval(cause: .corrupted, name: name, key: key, isPartial: true))
    }
}
