import Synchronization

// An entry becomes dormant when it is unused and its descriptor is needed elsewhere: the file is
// closed; key, metadata and checksums stay. The next hit opens the file and needs no digest, no
// record and no hashing: the file's status shows whether it is still the one that was verified.
extension DiskEntry {
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
    var dormantFile: (path: String, verification: UInt64) {
        state.withLock { ($0.dormantPath, $0.verification) }
    }

    /// The approximate bytes of memory of the entry without its file.
    var headCost: Int {
        state.withLock { state in
            // Roughly the object, its slots in two dictionaries and the heads of its arrays.
            800 + key.string.utf8.count + state.metadata.count + 9 * state.table.checksums.count
        }
    }
}

extension DiskEntryState {
    var canBecomeDormant: Bool {
        isPublished && !isDetached && !isUnsettled && verification != 0
            && record == nil && retired.isEmpty && tails.isEmpty
            && table.isComplete && table.isVerified
    }
}
