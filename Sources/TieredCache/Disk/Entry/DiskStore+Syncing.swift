import SystemPackage

// Durability is a promise for pinned entries alone: once one is complete, no power cut takes it
// away. Everything else may be lost, since what is lost is seen (invariant 2).
extension DiskStore {
    /// Waits until a complete pinned entry is on the medium; does nothing for any other, or where
    /// it is known to be.
    ///
    /// - Throws: ``CacheError/Code/localStorage``: the entry is there, but may not survive.
    func syncIfPinned(_ entry: DiskEntry) throws(CacheError) {
        let isPromised = entry.state.withLock {
            $0.isPromised && $0.syncedChanges < $0.changes
        }
        if isPromised { try sync(entry) }
    }

    /// Makes sure that a complete pinned body still has its name, without a sync.
    ///
    /// - Throws: ``CacheError/Code/localStorage``: its file was deleted under it.
    func requireNameIfPromised(of entry: DiskEntry) throws(CacheError) {
        let file = entry.state.withLock { $0.isPromised && !$0.isInline ? $0.body : nil }
        guard let file else { return }
        try naming(entry.name) { () throws(FileSystemError) in
            try requireName(of: file, entry: entry)
        }
    }

    /// Waits until what is stored of an entry by now is on the medium; a writer may go on
    /// meanwhile.
    ///
    /// Does nothing for an entry of which nothing is on disk yet.
    func checkpoint(_ entry: DiskEntry) throws(CacheError) {
        let isThere = entry.state.withLock { $0.isPublished && !$0.isDetached }
        if isThere { try sync(entry) }
    }

    /// Waits until what is stored of an entry is on the medium: bytes, record, and names.
    func sync(_ entry: DiskEntry) throws(CacheError) {
        try naming(entry.name) { () throws(FileSystemError) in
            // In this order: what changes meanwhile may or may not be on the medium.
            let (body, isInline, changes) = entry.state.withLock {
                ($0.body, $0.isInline, $0.changes)
            }
            if let body, !isInline {
                try requireName(of: body, entry: entry)
                try fileSystem.sync(body, dataOnly: false)
            }
            let record = try open(entry.name.record, in: entries, mode: .read)
            defer { fileSystem.close(record) }
            try fileSystem.sync(record, dataOnly: false)
            try syncNames(of: entry.name)
            entry.state.withLock { $0.syncedChanges = max($0.syncedChanges, changes) }
        }
    }

    /// Throws if the body's file was deleted under it: it would be gone with its last descriptor.
    private func requireName(of body: OpenFile, entry: DiskEntry) throws(FileSystemError) {
        let name = entry.name.body(entry.generation)
        let named = try fileSystem.status(of: name, in: entries)
        guard try fileSystem.status(of: body).identity == named.identity else {
            throw FileSystemError(.inspect, errno: .noSuchFileOrDirectory)
        }
    }

    /// Waits until the names of an entry's files, and of the directories above them, are on the
    /// medium.
    func syncNames(of name: EntryName) throws(FileSystemError) {
        let directory = try open(name.shard, in: entries, mode: .directory)
        defer { fileSystem.close(directory) }
        for directory in [directory, try entries, root] {
            try fileSystem.sync(directory, dataOnly: false)
        }
    }
}

extension DiskEntryState {
    /// Whether it is a promise that the body stays.
    fileprivate var isPromised: Bool {
        flags.contains(.pinned) && table.isComplete && isPublished && !isDetached
    }
}
