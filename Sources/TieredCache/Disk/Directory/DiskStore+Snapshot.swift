import SystemPackage

// Only an owner writes snapshots, and removes the last one before it changes anything: a change
// could make it wrong without a trace, such as a body that grew in place.
extension DiskStore {
    /// Opens the snapshot that the last owner left, once; it is read on after its name has gone.
    func openSnapshot() {
        claims.withLock {
            if state.withLock({ $0.entries.snapshot.isOpened }) { return }
            var file: OpenFile?
            do throws(FileSystemError) {
                file = try openFile(IndexSnapshot.name, in: root, mode: .read)
            } catch {
                // Without it, everything is read.
                if !error.isAbsence { count(\.readErrors) }
            }
            state.withLock { $0.entries.snapshot.didOpen(file) }
        }
    }

    /// Reads the snapshot from its beginning; before the index is complete.
    func snapshotReader() -> SnapshotReader? {
        guard let file = state.withLock({ $0.entries.snapshot.file }) else { return nil }
        do throws(FileSystemError) {
            return try SnapshotReader(file, fileSystem: fileSystem)
        } catch {
            count(\.readErrors)
            return nil
        }
    }

    /// The slots of a directory that is unchanged since the snapshot.
    func slots(of shard: Int, in snapshot: inout SnapshotReader?) -> [DiskIndex.Slot]? {
        do throws(FileSystemError) {
            return try snapshot?.slots(of: shard, at: stamp(of: shard))
        } catch {
            count(\.readErrors)
            return nil
        }
    }

    /// The state of one of the 256 directories; `nil` if it cannot be read.
    private func stamp(of shard: Int) -> IndexSnapshot.Stamp? {
        do throws(FileSystemError) {
            let status = try fileSystem.status(of: EntryName.shard(shard), in: entries)
            // A file system without times reports 0, which would fit every state.
            guard status.kind == .directory, status.modified > 0 else { return nil }
            return IndexSnapshot.Stamp(status)
        } catch {
            return nil  // Then it is read, and what is wrong is reported.
        }
    }

    /// Removes the snapshot for good, before anything in the directory changes.
    ///
    /// A reader that has it open continues: its content stays true for directories without a write.
    func consumeSnapshot() throws(CacheError) {
        try claims.withLock { () throws(CacheError) in
            guard access.canWrite, !state.withLock({ $0.entries.snapshot.isConsumed }) else {
                return
            }
            do throws(FileSystemError) {
                try removeSnapshot()
            } catch {
                throw self.error(error, naming: IndexSnapshot.name)
            }
            state.withLock { $0.entries.snapshot.isConsumed = true }
        }
    }

    private func removeSnapshot() throws(FileSystemError) {
        let status = try ifPresent { () throws(FileSystemError) in
            try fileSystem.status(of: IndexSnapshot.name, in: root)
        }
        // Anything but a file is foreign, and no reader accepts it.
        guard let status, status.kind == .file else { return }
        // Unlinked, not emptied: the open descriptor is read on.
        try fileSystem.unlinkIfPresent(IndexSnapshot.name, in: root)
        state.withLock { state in
            if state.entries.snapshot.file != nil {
                state.entries.snapshot.size = status.allocatedBytes
            } else {
                state.space.charge(-status.allocatedBytes)
            }
        }
        // Or a power cut could bring it back beside what was done since.
        attempt { () throws(FileSystemError) in try fileSystem.sync(root, dataOnly: false) }
    }

    /// Writes the index down, the last that is written before the lock of the directory is given
    /// up.
    ///
    /// Not for a small cache, which is read through sooner than a file is synced. Of directories
    /// that are not in the index it says what the snapshot before said, if there was one.
    func writeSnapshot() {
        guard access.canWrite, let staging else { return }
        assert(lock.isClosed, "a snapshot is written while something else may be")
        let (known, size) = state.withLock { state -> (EntryIndex?, Int64) in
            let isNeeded = state.entries.isLoaded || state.entries.snapshot.isConsumed
            let isWorthIt = state.entries.index.count >= options.minimumSnapshotEntries
            guard isNeeded, isWorthIt || state.entries.snapshot.file != nil else { return (nil, 0) }
            return (state.entries, state.entries.snapshot.size)
        }
        guard let known else { return }
        let bytes = known.index.count * IndexSnapshot.entryLength + 256 * 4096
        let cost = Self.cost(bytes) + size
        guard state.withLock({ $0.space.admit(cost, isLastTry: true) }) == .granted else { return }
        defer { endReservation(cost) }
        // Without it the next start reads the directory.
        attempt { () throws(FileSystemError) in
            try fileSystem.unlinkIfPresent(IndexSnapshot.name, in: staging)
            try writeSnapshot(of: known, in: staging)
        }
    }

    private func writeSnapshot(
        of known: EntryIndex,
        in staging: OpenFile
    ) throws(FileSystemError) {
        let file = try open(IndexSnapshot.name, in: staging, mode: .createNew)
        defer { fileSystem.close(file) }
        do throws(FileSystemError) {
            try writeSections(of: known, to: file)
            try fileSystem.rename(
                IndexSnapshot.name,
                in: staging,
                to: IndexSnapshot.name,
                in: root
            )
        } catch {
            // Something else may have the name: what was written must not stay uncounted.
            try fileSystem.unlinkIfPresent(IndexSnapshot.name, in: staging)
            throw error
        }
    }

    private func writeSections(of known: EntryIndex, to file: OpenFile) throws(FileSystemError) {
        var offset: Int64 = 0
        var before = snapshotReader()
        for (shard, numbers) in known.index.numbersByShard.enumerated() {
            let slots =
                known.hasLoaded(shard)
                ? numbers.map { known.index.slot($0) }
                : self.slots(of: shard, in: &before)?.map(known.used)
            guard let slots, let section = section(of: shard, slots) else { continue }
            try fileSystem.write(section, to: file, at: offset)
            offset += Int64(section.count)
        }
    }

    private func section(of shard: Int, _ slots: [DiskIndex.Slot]) -> [UInt8]? {
        guard !slots.isEmpty, slots.allSatisfy(IndexSnapshot.canHold),
            let stamp = stamp(of: shard)
        else { return nil }
        return IndexSnapshot.encode(shard: shard, stamp: stamp, slots)
    }
}
