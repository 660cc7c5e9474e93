import SystemPackage

// Metadata that are as long as those before them are written over them.
extension DiskStore {
    /// The longest head that is changed in place.
    ///
    /// The kernel takes a write within one page as a whole, so neither the end of the process nor a
    /// lost page leaves a part of it.
    private static let longestHead = 4096

    /// Changes the metadata where they stand in the record, where nothing else of it changes.
    ///
    /// To rename a new record over the old one costs ten times as much and more: ext4 begins to
    /// write the new file out then. What is pinned is not changed in place, since a torn sector
    /// would cost the entry.
    ///
    /// - Returns: false where the record has to be replaced; memory is as before then, and so is
    ///   the disk unless it failed in the middle of the write, which costs the entry if it cannot
    ///   be replaced.
    func overwriteMetadata(
        of entry: DiskEntry,
        with metadata: [UInt8]
    ) throws(CacheError) -> Bool {
        try beginWriting()
        defer { endWriting() }
        return withLock(of: entry.name) { lock in
            // A scan of its directory takes a head that is half written for damage.
            guard state.withLock({ $0.entries.hasLoaded(entry.name.shardNumber) }) else {
                return false
            }
            let before = entry.state.withLock { $0 }
            guard before.isPublished, !before.isDetached, !before.flags.contains(.pinned),
                metadata.count == before.metadata.count,
                before.headLength(of: entry.key) <= Self.longestHead
            else { return false }
            do throws(FileSystemError) {
                guard try overwriteHead(lock, of: entry, before: before, metadata: metadata) else {
                    return false
                }
            } catch {
                return false  // The attempt to replace the record tells what is wrong.
            }
            entry.state.withLock { state in
                state.change(of: entry) { $0.metadata = metadata }
                state.changes += 1
            }
            return true
        }
    }

    private func overwriteHead(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        before: DiskEntryState,
        metadata: [UInt8]
    ) throws(FileSystemError) -> Bool {
        let file = try openFile(entry.name.record, in: entries, mode: .readWrite)
        defer { fileSystem.close(file) }
        var fixed = [UInt8](repeating: 0, count: Record.fixedLength)
        let count = try fixed.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try fileSystem.read(file, into: buffer, at: 0)
        }
        var after = before
        after.metadata = metadata
        let head = entry.record(of: after).encode(table: [])
        // Another program may have put another record there.
        guard count == fixed.count, fixed[..<8] == head[..<8],
            fixed[24...] == head[24..<fixed.count], try isAsVerified(lock, file: file, of: entry)
        else { return false }
        try overwrite(file, with: head, keepingUseIn: fixed)
        try didChangeRecord(lock, file: file, of: entry)
        return true
    }

    /// Writes a head but for its magic, with the last use that is on disk.
    private func overwrite(
        _ file: OpenFile,
        with head: [UInt8],
        keepingUseIn fixed: [UInt8]
    ) throws(FileSystemError) {
        var content = head
        let use = Int(Record.lastUseOffset)
        content.replaceSubrange(use..<use + 8, with: fixed[use..<use + 8])
        try fileSystem.write(Array(content[8...]), to: file, at: 8)
    }
}
