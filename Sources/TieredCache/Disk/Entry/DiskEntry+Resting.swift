import Synchronization

// An entry rests when nobody uses it and its descriptor is wanted elsewhere: the file is closed, key,
// metadata and checksums stay. The next hit opens the file, and needs no digest, no record and no
// hashing; whether it still is the file that was verified, its status tells.
extension DiskEntry {
    /// Gives up the file; called by the descriptor cache under its lock, for an entry that nobody
    /// else has, so that nobody can be reading.
    ///
    /// - Returns: the file to close; `nil` for an entry that cannot be found again without its record.
    func rest() -> OpenFile? {
        state.withLock { state in
            guard state.canRest, let file = state.body else { return nil }
            state.body = nil
            state.isBodyWritable = false
            if state.restingPath.isEmpty {
                state.restingPath = state.isInline ? name.record : name.body(generation)
            }
            refreshHotBody(&state)
            return file
        }
    }

    /// Takes the file that the entry rested without.
    ///
    /// - Returns: false if the entry has one already, or no name any more.
    func wake(with file: OpenFile) -> Bool {
        state.withLock { state in
            guard state.body == nil, !state.isDetached else { return false }
            state.body = file
            refreshHotBody(&state)
            return true
        }
    }

    /// Which file it is, and what its status has to be.
    var restingFile: (path: String, verification: UInt64) {
        state.withLock { ($0.restingPath, $0.verification) }
    }

    /// What the entry takes in memory without its file, about.
    var headCost: Int {
        state.withLock { state in
            800 + key.string.utf8.count + state.metadata.count + 9 * state.table.checksums.count
        }
    }
}

extension DiskEntryState {
    fileprivate var canRest: Bool {
        isPublished && !isDetached && !isUnsettled && verification != 0
            && record == nil && retired.isEmpty && tails.isEmpty
            && table.isComplete && table.isVerified
    }
}
