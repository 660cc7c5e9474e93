/// Something that is gone from the disk, and why: for the ledger, not for decisions.
struct DiskRemoval: Sendable {
    enum Cause: Sendable {
        /// Its time had passed, and something else took its place.
        case expired
        /// Room was needed.
        case evicted(DiskEvictionReason)
        /// A newer body took its place.
        case replaced
        /// Somebody asked for it.
        case removed
        /// What was on the disk is not what was written.
        case corrupted
    }

    var cause: Cause
    /// Whose; `nil` for all that there were.
    var name: EntryName?
    /// The key, where it was known without another look at the disk.
    var key: CacheKey?
    /// What the files were allocated, or of a part what it took.
    var bytes: Int64 = 0
    var entries = 1
    /// Whether the entry is still there, with less.
    var isPartial = false
}

extension DiskStore {
    /// Tells the history and the counters.
    ///
    /// The lock of a name may be stored here: an earlier one of ``LockOrder`` that they took would
    /// trap.
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
