package import SystemPackage

extension DiskStore {
    /// Changes what the record says, the body staying what it is.
    ///
    /// - Throws: what the disk says; memory and disk are as before then.
    func replaceRecord(
        of entry: DiskEntry,
        _ change: @Sendable (inout DiskEntryState) -> Void
    ) throws(CacheError) {
        try beginWriting()
        defer { endWriting() }
        var isDone = false
        while !isDone {
            let cost = entry.state.withLock { $0.replacementCost(after: change, of: entry.key) }
            try reserve(cost, for: entry.name)
            defer { endReservation(cost) }
            isDone = try sparingRoom(cost) { () throws(CacheError) in
                try withLock(of: entry.name) { (lock) throws(CacheError) in
                    try rewrite(lock, of: entry, change: change, within: cost)
                }
            }
        }
        entry.refreshHotBody()
        try syncIfPinned(entry)
    }

    /// Changes an entry that has no record, which takes no room.
    ///
    /// - Returns: false if it has one; nothing was changed then.
    func changeUnrecorded(
        _ entry: DiskEntry,
        change: @Sendable (inout DiskEntryState) -> Void
    ) -> Bool {
        withLock(of: entry.name) { _ in
            entry.state.withLock { state in
                guard !state.isPublished || state.isDetached else { return false }
                state.change(of: entry, change)
                return true
            }
        }
    }

    /// - Returns: false if the table has grown meanwhile, so that more has to be reserved.
    private func rewrite(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        change: @Sendable (inout DiskEntryState) -> Void,
        within cost: Int64
    ) throws(CacheError) -> Bool {
        let copy = entry.state.withLock { $0 }
        guard copy.isPublished, !copy.isDetached else {
            entry.state.withLock { $0.change(of: entry, change) }
            return true
        }
        guard copy.replacementCost(after: change, of: entry.key) <= cost else { return false }
        try naming(entry.name) { () throws(FileSystemError) in
            try rewrite(lock, of: entry, before: copy, change: change)
        }
        return true
    }

    private func rewrite(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        before: DiskEntryState,
        change: @Sendable (inout DiskEntryState) -> Void
    ) throws(FileSystemError) {
        var after = before
        change(&after)
        var record = entry.record(of: after)
        let body = try inlineBody(of: entry, state: before)
        if body == nil { record.flags.remove(.inline) }
        let table = before.isInline && body == nil ? [] : after.table.checksums
        let isInline = record.flags.contains(.inline)
        // Behind an inline body, where it is left out: such a body is compared quickly. Without its
        // body the record has no table, and the word would stand in its place.
        let comparison =
            before.isInline ? nil : after.table.comparisonWord(after.decision.proven)
        let head = record.encode(table: table, comparison: comparison)
        let (file, status) = try (body ?? []).withUnsafeBufferPointer {
            (body) throws(FileSystemError) in
            try replaceRecordFile(lock, of: entry, head: head, body: UnsafeRawBufferPointer(body))
        }
        let closing = entry.state.withLock { state in
            state.change(of: entry, change)
            return state.didReplaceRecord(
                lock,
                file: file,
                inlineAt: isInline ? Int64(head.count) : nil,
                status: status
            )
        }
        for file in closing {
            fileSystem.close(file)
        }
        let recordBytes = chargedRecord(status, of: entry)
        chargeReplaced(lock, of: entry, recordBytes: recordBytes, keepsOld: before.isInline)
    }

    /// Charges a record that was replaced.
    ///
    /// `keepsOld`: the old file is still open for readers; it stays allocated, and is charged on
    /// the entry until that goes.
    private func chargeReplaced(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        recordBytes: Int64,
        keepsOld: Bool
    ) {
        let isPinned = entry.isPinned
        let kept = state.withLock { state -> Int64 in
            let known = state.entries.charged(entry.name, generation: entry.generation)
            let old = known?.recordBytes ?? recordBytes
            let delta = state.entries.update(entry.name, generation: entry.generation) {
                slot in
                slot.recordBytes = recordBytes
            }
            state.space.charge((delta ?? 0) + (keepsOld ? old : 0))
            state.entries.setPinned(isPinned, of: entry.name)
            return keepsOld ? old : 0
        }
        entry.state.withLock { $0.retiredBytes += kept }
    }

    /// The verified body of an inline record; `nil` if there is none, or not any more.
    private func inlineBody(
        of entry: DiskEntry,
        state: DiskEntryState
    ) throws(FileSystemError) -> [UInt8]? {
        guard state.isInline, let length = state.table.completeLength else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(length))
        let count = bytes.withUnsafeMutableBytes { entry.read(at: 0, into: $0) }
        return count == bytes.count ? bytes : nil
    }

    /// A file that equals the complete body of an entry.
    ///
    /// A small body kept in its record is written out first. The path is good while the entry is
    /// leased.
    ///
    /// - Returns: `nil` if there is no entry, or not all of it is held.
    package func bodyPath(for key: CacheKey) throws(CacheError) -> FilePath? {
        guard let entry = try entry(for: key) else { return nil }
        return try bodyPath(of: entry)
    }

    /// The same of an entry that was looked up before.
    func bodyPath(of entry: DiskEntry) throws(CacheError) -> FilePath? {
        guard entry.isComplete else { return nil }
        if !access.canWrite, !(try isStillComplete(entry)) { return nil }
        // A reader of the path verifies no checksum (invariant 2).
        guard entry.verifyAll() else { return nil }
        let path = options.root.appending("entries").appending(entry.name.body(entry.generation))
        guard entry.state.withLock({ $0.isInline }) else {
            guard isExact(entry) else { return nil }
            try protectHandedOut(entry)
            return path
        }
        try beginWriting()
        defer { endWriting() }
        let cost =
            Self.cost(Int(BlockTable.blockSize)) + Self.cost(Int(entry.record.tableOffset) + 8)
        try reserve(cost, for: entry.name)
        defer { endReservation(cost) }
        return try withLock(of: entry.name) { (lock) throws(CacheError) in
            guard !entry.isSuperseded else { return nil }
            return try naming(entry.name) { () throws(FileSystemError) in
                try writeOut(lock, entry: entry) ? path : nil
            }
        }
    }

    /// Checks again, now that a shared lock on the body keeps the owner from discarding any of it.
    private func isStillComplete(_ entry: DiskEntry) throws(CacheError) -> Bool {
        guard let again = try self.entry(for: entry.key) else { return false }
        return again.generation == entry.generation && again.isComplete
    }

    /// Whether the name stands for the file that was verified, with nothing behind the body.
    private func isExact(_ entry: DiskEntry) -> Bool {
        guard let length = entry.completeLength else { return false }
        let body = entry.state.withLock { $0.body }
        do throws(FileSystemError) {
            let named = try fileSystem.status(
                of: entry.name.body(entry.generation),
                in: entries
            )
            guard named.kind == .file else { return false }
            guard let body else { return named.size == length }
            guard named.size >= length else {
                entry.loseBehindEnd(of: body)
                return false
            }
            guard try fileSystem.status(of: body).identity == named.identity else { return false }
            if named.size > length { try fileSystem.truncate(body, to: length) }
            return true
        } catch {
            return false  // Gone, or a guest's: no path is better than a wrong one.
        }
    }

    /// A reader of the path cannot see gaps, so the file must keep all its blocks while it exists.
    private func protectHandedOut(_ entry: DiskEntry) throws(CacheError) {
        let isProtected = entry.state.withLock { state in
            state.flags.contains(.handedOut) || Int64(state.table.storedBytes) < options.hugeBody
        }
        guard !isProtected else { return }
        if options.isReader { try requireOwner() }
        guard access.canWrite else { return }
        try replaceRecord(of: entry) { $0.flags.insert(.handedOut) }
    }

    private func writeOut(
        _ lock: borrowing NameLock,
        entry: DiskEntry
    ) throws(FileSystemError) -> Bool {
        let before = entry.state.withLock { $0 }
        guard before.isInline else { return true }
        guard let bytes = try inlineBody(of: entry, state: before) else { return false }
        let path = entry.name.body(entry.generation)
        try fileSystem.unlinkIfPresent(path, in: entries)
        let body = try create(lock, at: path, in: entries) { (file) throws(FileSystemError) in
            try fileSystem.write(bytes, to: file, at: 0)
            guard entry.isPinned else { return }
            try fileSystem.sync(file, dataOnly: false)
            try syncNames(of: entry.name)
        }.file
        var record = entry.record
        record.flags.remove(.inline)
        let head = record.encode(table: before.table.checksums)
        let file: OpenFile
        do throws(FileSystemError) {
            file = try replaceRecordFile(lock, of: entry, head: head).file
        } catch {
            fileSystem.close(body)
            try fileSystem.unlinkIfPresent(path, in: entries)
            throw error
        }
        entry.state.withLock { state in
            state.setBody(body)
            state.flags.remove(.inline)
            state.changes += 1
        }
        chargeReplaced(lock, of: entry, recordBytes: 0, keepsOld: true)
        try charge(lock, for: entry, record: file)
        fileSystem.close(file)
        entry.refreshHotBody()
        return true
    }

    /// Removes a body without a record.
    func discardBody(of name: EntryName, generation: UInt64) {
        attempt { () throws(FileSystemError) in
            try fileSystem.unlinkIfPresent(name.body(generation), in: entries)
        }
    }
}

extension DiskEntryState {
    /// The cost of the record after a change.
    fileprivate func replacementCost(
        after change: @Sendable (inout DiskEntryState) -> Void,
        of key: CacheKey
    ) -> Int64 {
        var after = self
        change(&after)
        let body = after.isInline ? Int(after.table.completeLength ?? 0) : 0
        let words = after.table.checksums.count + 1
        return DiskStore.cost(after.headLength(of: key) + 8 * words + body)
    }

    /// - Returns: the files to close.
    fileprivate mutating func didReplaceRecord(
        _ lock: borrowing NameLock,
        file: OpenFile,
        inlineAt offset: Int64?,
        status: FileStatus
    ) -> [OpenFile] {
        changes += 1
        if let offset {
            setBody(file, at: offset)
            verification = status.verification
            return []
        }
        if isInline {
            // The inline body was damaged: the record that is left holds nothing.
            flags.remove(.inline)
            setBody(nil)
            table = BlockTable(completeLength: table.completeLength)
            return [file]
        }
        let isNeeded = !tails.isEmpty
        let old = setRecord(lock, to: isNeeded ? file : nil)
        return [old, isNeeded ? nil : file].compactMap { $0 }
    }
}
