import SystemPackage

// What is whole and yet not what it should be is set aside with its record: served to nobody, there
// to be looked at. It leaves before anything else when room is needed, when the right bytes have
// come, and when somebody repairs or clears the directory. See docs/disk-format.md.
extension DiskStore {
    /// More entries than this are never kept aside; together they take at most a quarter of the
    /// limit.
    static let maximumQuarantined = 4

    /// Sets an entry aside; whoever reads it reads on.
    ///
    /// One that takes too much room, or that cannot be set aside, is removed. A successor is thrown
    /// away, and what has its name stays; so does what has taken the name of an entry meanwhile.
    ///
    /// - Returns: whether it was set aside, or thrown away as a successor.
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
            guard let slot else { return false }
            var isAside = slot.bytes <= limit / 4
            if isAside {
                isAside = attempt { () throws(FileSystemError) in try setAside(lock, slot, limit) }
            }
            if !isAside { try removeFiles(lock) }
            replace(&lock, with: nil, slot: nil, because: .corrupted, of: entry.key)
            return isAside
        }
    }

    /// Removes what is set aside under a key: the right bytes have come.
    func releaseQuarantine(of key: CacheKey) {
        guard state.withLock({ $0.space.quarantined > 0 }), lock.beginWrite() else { return }
        defer { endWriting() }
        emptyQuarantine(of: name(of: key))
    }

    /// Removes what is set aside; what cannot be removed is tried again when room is needed.
    ///
    /// - Parameter name: whose; nil for all.
    /// - Returns: the bytes freed.
    @discardableResult
    func emptyQuarantine(of name: EntryName? = nil) -> Int64 {
        guard state.withLock({ $0.space.quarantined > 0 }) else { return 0 }
        var freed: Int64 = 0
        // What is gone meanwhile, or what the disk refuses, costs space, not correctness.
        attempt { () throws(FileSystemError) in
            let directory = try open(DiskDirectory.quarantine, in: root, .directory)
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

    /// Tells what is set aside, and what else lies there.
    ///
    /// - Parameters:
    ///   - isEmptied: whether it is removed by the one who asks.
    ///   - report: gets a finding for each file.
    /// - Throws: `.localStorage` where the directory cannot be listed.
    func reportQuarantine(isEmptied: Bool, _ report: (DiskFinding) -> Void) throws(CacheError) {
        let items: [DirectoryItem]
        do throws(FileSystemError) {
            items = try list(DiskDirectory.quarantine, in: root)
        } catch {
            guard error.isAbsence else { throw self.error(error, DiskDirectory.quarantine) }
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
        _ slot: DiskIndex.Slot,
        _ limit: Int64
    ) throws(FileSystemError) {
        do throws(FileSystemError) {
            try fileSystem.makeDirectory(DiskDirectory.quarantine, in: root)
        } catch  where error.errno == .fileExists {
            // From before; opening it finds out whether it is a directory.
        }
        let directory = try open(DiskDirectory.quarantine, in: root, .directory)
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
            // Booked once more with the entry, as long as somebody has that open.
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

    /// Whose record or body it is; nil for one that is only being written.
    var entry: EntryName? {
        switch self {
        case .record(let name), .body(let name, _): name
        case .staged: nil
        }
    }
}
