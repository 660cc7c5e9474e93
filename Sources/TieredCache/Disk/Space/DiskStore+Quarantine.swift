import SystemPackage

// An entry whose body is whole but fails its digest is quarantined with its record: it is never
// served, and stays for inspection. It is removed first when room is needed, when the right bytes
// are stored, and when the directory is repaired or cleared. See docs/disk-format.md.
extension DiskStore {
    /// The largest number of quarantined entries; together they take at most a quarter of the
    /// limit.
    static let maximumQuarantined = 4

    /// Quarantines an entry; leases on it stay readable.
    ///
    /// An entry that takes too much room, or that cannot be moved, is removed. A successor is
    /// discarded, and the entry that has its name stays; so does an entry that took the name
    /// meanwhile. Of one without a record nothing is left.
    ///
    /// - Returns: whether it was quarantined, or discarded as a successor; lookups find it no more
    ///   in any case.
    /// - Throws: `.notOwner`; `.localStorage` where it cannot be removed.
    func quarantine(_ entry: DiskEntry) throws(CacheError) -> Bool {
        try beginWriting()
        defer { endWriting() }
        let name = entry.name
        try prepareIndex(for: name)
        return try withLock(of: name) { (lock) throws(CacheError) in
            if entry.isSuccessor { return giveUpSuccessor(lock) }
            let (slot, limit) = state.withLock {
                ($0.entries.charged(name, generation: entry.generation), $0.space.limit)
            }
            guard let slot else {
                forget(&lock, unrecorded: entry)
                return false
            }
            var isAside = slot.bytes <= limit / 4
            if isAside {
                isAside = attempt { () throws(FileSystemError) in
                    try setAside(lock, slot: slot, limit: limit)
                }
            }
            if !isAside { try removeFiles(lock) }
            replace(&lock, with: nil, slot: nil, because: .corrupted, of: entry.key)
            return isAside
        }
    }

    /// Takes an entry from memory that has no record yet: lookups would go on finding it there.
    private func forget(_ lock: inout NameLock, unrecorded entry: DiskEntry) {
        let name = lock.name
        guard state.withLock({ $0.open.residents[name] === entry }) else { return }
        replace(&lock, with: nil, slot: nil, because: nil)
    }

    /// Removes the quarantined files of a key: the right bytes have been stored.
    func releaseQuarantine(of key: CacheKey) {
        guard state.withLock({ $0.space.quarantined > 0 }), lock.beginWrite() else { return }
        defer { endWriting() }
        emptyQuarantine(of: name(of: key))
    }

    /// Removes quarantined files; those that cannot be removed are tried again when room is needed.
    ///
    /// - Parameter name: the name of the entry; nil for all.
    /// - Returns: the bytes freed.
    @discardableResult
    func emptyQuarantine(of name: EntryName? = nil) -> Int64 {
        guard state.withLock({ $0.space.quarantined > 0 }) else { return 0 }
        var freed: Int64 = 0
        // A file that stays costs space, not correctness.
        attempt { () throws(FileSystemError) in
            let directory = try open(DiskDirectory.quarantine, in: root, mode: .directory)
            defer { fileSystem.close(directory) }
            for item in try fileSystem.list(directory)
            where item.isQuarantined && (name == nil || EntryFileName(item.name)?.entry == name) {
                let bytes = try fileSystem.status(of: item.name, in: directory).allocatedBytes
                try fileSystem.unlink(item.name, in: directory)
                freed += bytes
            }
        }
        state.withLock { $0.space.chargeQuarantined(-freed) }
        return freed
    }

    /// Reports quarantined files, and foreign ones beside them.
    ///
    /// - Parameters:
    ///   - isEmptied: whether the caller removes the quarantined files.
    ///   - report: gets a finding for each file.
    /// - Throws: `.localStorage` where the directory cannot be listed.
    func reportQuarantine(isEmptied: Bool, _ report: (DiskFinding) -> Void) throws(CacheError) {
        let items: [DirectoryItem]
        do throws(FileSystemError) {
            items = try list(DiskDirectory.quarantine, in: root)
        } catch {
            guard error.isAbsence else { throw self.error(error, naming: DiskDirectory.quarantine) }
            return
        }
        let path = options.root.appending(DiskDirectory.quarantine)
        for item in items {
            report(
                DiskFinding(
                    kind: item.isQuarantined ? .quarantined : .unaccounted,
                    path: path.appending(item.name),
                    isRepaired: item.isQuarantined && isEmptied
                )
            )
        }
        if isEmptied { emptyQuarantine() }
    }

    private func setAside(
        _ lock: borrowing NameLock,
        slot: DiskIndex.Slot,
        limit: Int64
    ) throws(FileSystemError) {
        do throws(FileSystemError) {
            try fileSystem.makeDirectory(DiskDirectory.quarantine, in: root)
        } catch  where error.errno == .fileExists {
            // From before; opening it finds out whether it is a directory.
        }
        let directory = try open(DiskDirectory.quarantine, in: root, mode: .directory)
        defer { fileSystem.close(directory) }
        let files = try fileSystem.list(directory).count(where: \.isQuarantined)
        makeRoomAside(for: slot, limit, files: files)
        // The record first, as when an entry is removed: a body alone is swept after a crash.
        var aside = [(slot.name.record, slot.recordBytes)]
        if slot.hasBody { aside.append((slot.name.body(slot.generation), slot.bodyBytes)) }
        for (path, charged) in aside {
            let file = path.split(separator: "/").last.map(String.init) ?? path
            try fileSystem.rename(path, in: entries, to: file, in: directory)
            let status = try fileSystem.status(of: file, in: directory)
            let bytes = self.charged(status, atLeast: charged)
            // Charged once more with the entry while that is leased.
            state.withLock { $0.space.chargeQuarantined(bytes) }
        }
    }

    /// An earlier body of the same name goes; so do all where there are many.
    private func makeRoomAside(for slot: DiskIndex.Slot, _ limit: Int64, files: Int) {
        emptyQuarantine(of: slot.name)
        let bytes = state.withLock { $0.space.quarantined }
        // An entry is a record and perhaps a body.
        guard bytes + slot.bytes > limit / 4 || files > 2 * (Self.maximumQuarantined - 1) else {
            return
        }
        emptyQuarantine()
    }
}

extension DirectoryItem {
    /// Whether it is what a quarantine holds of ours: a record or a body.
    var isQuarantined: Bool { kind == .file && EntryFileName(name)?.entry != nil }
}

extension EntryFileName {
    /// Where it lies below `entries`; nil for one that is only being written.
    var path: String? {
        switch self {
        case .record(let name): name.record
        case .body(let name, let generation): name.body(generation)
        case .staged: nil
        }
    }

    /// The name of the entry; nil for a file that is only being written.
    var entry: EntryName? {
        switch self {
        case .record(let name), .body(let name, _): name
        case .staged: nil
        }
    }
}
