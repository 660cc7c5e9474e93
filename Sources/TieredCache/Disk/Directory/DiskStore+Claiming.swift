import SystemPackage

// LOCK holds the claim: an upper bound of the bytes allocated in the directory. It is raised and
// synced before more is written, so that the next owner can write before it has read the whole
// directory without exceeding the limit: entries not yet read count as the claim says. Only a
// directory that takes long to read has one.
extension DiskStore {
    /// Makes sure that what is allocated and reserved stays below the claim.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` if it cannot be raised.
    func claimRoom() throws(CacheError) {
        let least = options.minimumSnapshotEntries
        guard state.withLock({ $0.lacksClaim(from: least) }) else { return }
        // Asked for again behind the lock: another thread may have raised it meanwhile.
        try claims.withLock { () throws(CacheError) in
            let wanted = state.withLock { $0.lacksClaim(from: least) ? $0.space.wantedClaim : nil }
            guard let claim = wanted else { return }
            do throws(FileSystemError) {
                try lock.withFile { (file) throws(FileSystemError) in
                    try LockFile(claim: claim).write(to: file, fileSystem)
                    try fileSystem.sync(file, dataOnly: false)
                }
            } catch {
                throw self.error(error, naming: "LOCK")
            }
            // Only now: nothing may be allocated above the old claim before the new one is on the
            // medium.
            state.withLock { $0.space.didClaim(claim) }
        }
    }

    /// Lowers a claim that is far too high, once everything is known.
    func lowerClaim() {
        guard state.withLock({ $0.excessiveClaim != nil }), lock.beginWrite() else { return }
        defer { endWriting() }
        lock.withFile { lowerClaim($0) }
    }

    /// Lowers a claim that is far too high; `lockFile` is the file that says it.
    func lowerClaim(_ lockFile: OpenFile) {
        guard access.canWrite else { return }
        claims.withLock {
            // From here on the lower claim holds, although the file still has the higher one.
            let claim = state.withLock { state in
                let claim = state.excessiveClaim
                if let claim { state.space.didClaim(claim) }
                return claim
            }
            guard let claim else { return }
            attempt { () throws(FileSystemError) in
                // Removed files must not come back below a lower claim: this commits the journal.
                try fileSystem.sync(entries, dataOnly: false)
                try LockFile(claim: claim).write(to: lockFile, fileSystem)
            }
        }
    }
}

extension DiskStore.State {
    /// Whether one is to be raised, or made where at least so many entries make it worth while.
    fileprivate func lacksClaim(from least: Int) -> Bool {
        space.lacksClaim(isWorthIt: entries.isLoaded && entries.index.count >= least)
    }

    /// The value to lower the claim to.
    fileprivate var excessiveClaim: Int64? { entries.isLoaded ? space.excessiveClaim : nil }
}
