import SystemPackage

// Only an owner reads and writes snapshots, and none is there while it works: the first change could
// make it a lie that nothing tells from the truth, such as a body that grew in place.
extension DiskCore {
    /// The snapshot that the last owner left.
    func openSnapshot() -> SnapshotReader? {
        guard access.canWrite else { return nil }
        do throws(FileSystemError) {
            let file = try open(IndexSnapshot.name, in: root, .read)
            do throws(FileSystemError) {
                return try SnapshotReader(file, fileSystem)
            } catch {
                fileSystem.close(file)
                throw error
            }
        } catch {
            // Without it, everything is read.
            if !error.isAbsence { count(\.readErrors) }
            return nil
        }
    }

    /// The last change of one of the 256 directories; `nil` if that cannot be told.
    func modification(of shard: Int) -> Int64? {
        guard let entries else { return nil }
        do throws(FileSystemError) {
            let status = try fileSystem.status(of: EntryName.shard(shard), in: entries)
            return status.kind == .directory && status.modified > 0 ? status.modified : nil
        } catch {
            return nil  // Then it is read, and what is wrong is reported.
        }
    }

    /// Removes the snapshot for good, before anything in the directory changes.
    func consumeSnapshot() throws(CacheError) {
        do throws(FileSystemError) {
            let bytes = try fileSystem.status(of: IndexSnapshot.name, in: root).allocatedBytes
            try unlinkIfPresent(IndexSnapshot.name, in: root)
            state.withLock { $0.ledger.book(-bytes) }
        } catch {
            throw self.error(error, IndexSnapshot.name)
        }
        do throws(FileSystemError) {
            // Or a power cut could bring it back beside what was done since.
            try fileSystem.sync(root, dataOnly: false)
        } catch {
            count(\.housekeepingErrors)
        }
    }

    /// Writes the index down, once nothing is written any more and before the lock is given up.
    ///
    /// Not for a small cache, which is read through sooner than a file is synced.
    func writeSnapshot() {
        guard access.canWrite, let staging else { return }
        let index = state.withLock { state -> DiskIndex? in
            let isWorthIt = state.index.count >= options.minimumSnapshotEntries
            return state.isIndexLoaded && isWorthIt ? state.index : nil
        }
        guard let index else { return }
        let cost = Self.cost(index.count * IndexSnapshot.entryLength + 256 * 4096)
        guard state.withLock({ $0.ledger.admit(cost, isLastTry: true) }) == .granted else { return }
        defer { endReservation(cost) }
        do throws(FileSystemError) {
            try unlinkIfPresent(IndexSnapshot.name, in: staging)
            let file = try open(IndexSnapshot.name, in: staging, .createNew)
            defer { fileSystem.close(file) }
            try writeSections(of: index, to: file)
            try fileSystem.rename(
                IndexSnapshot.name,
                in: staging,
                to: IndexSnapshot.name,
                in: root
            )
        } catch {
            // The next start reads the directory; what is left in staging is swept then.
            count(\.housekeepingErrors)
        }
    }

    private func writeSections(
        of index: DiskIndex,
        to file: OpenFile
    ) throws(FileSystemError) {
        var offset: Int64 = 0
        for (shard, numbers) in index.numbersByShard.enumerated() where !numbers.isEmpty {
            let slots = numbers.map { index.slot($0) }
            guard let modified = modification(of: shard),
                slots.allSatisfy(IndexSnapshot.canHold)
            else { continue }
            let section = IndexSnapshot.encode(shard: shard, modified: modified, slots)
            try fileSystem.write(section, to: file, at: offset)
            offset += Int64(section.count)
        }
    }
}
