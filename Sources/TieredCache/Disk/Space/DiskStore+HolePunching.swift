import SystemPackage

// Part of a huge body is freed by punching holes: first the table is written, so that every reader
// sees a gap, then the bytes are freed. A concurrent reader notices, see `DiskEntry.givenUp`.
extension DiskStore {
    /// Shortens an unused huge entry to its head, and frees the rest.
    ///
    /// - Returns: the removal; nil if the entry has to be evicted as a whole.
    /// - Throws: as ``recordToEvict(_:victim:)`` does.
    func shorten(_ name: EntryName) throws(CacheError) -> DiskRemoval? {
        try withLock(of: name) { (lock) throws(CacheError) -> DiskRemoval? in
            guard let victim = state.withLock({ $0.entries.victim(name) }),
                let found = try recordToEvict(lock, victim: victim),
                found.record.generation == victim.generation,
                found.record.canBePunched,
                DiskEntry.mayBePunched(found.record.completeLength, hugeBody: options.hugeBody)
            else { return nil }
            var left = victim
            do throws(FileSystemError) {
                try giveUpTail(lock, of: found, slot: &left)
            } catch {
                // A file system without holes, or a failing one: the entry leaves as a whole.
                return nil
            }
            left.queue = .heads
            // The file has changed, so what was verified of it counts no more.
            left.verification = 0
            state.withLock { state in
                state.entries.spareVictim(left)
                state.space.charge(left.bytes - victim.bytes)
                state.counters.shortened += 1
            }
            return DiskRemoval(
                cause: .evicted(.coldBlocks),
                name: victim.name,
                key: found.record.key,
                bytes: victim.bytes - left.bytes,
                isPartial: true
            )
        }
    }

    private func giveUpTail(
        _ lock: borrowing NameLock,
        of found: RecordReader.Found,
        slot: inout DiskIndex.Slot
    ) throws(FileSystemError) {
        let head = Int(options.headLength / BlockTable.blockSize)
        let record = try open(found.name.record, in: entries, mode: .readWrite)
        defer { fileSystem.close(record) }
        let body = try open(found.name.body(found.record.generation), in: entries, mode: .readWrite)
        defer { fileSystem.close(body) }
        try requireUnshared(body)
        // A table that is cut off says that the rest is not stored.
        try fileSystem.truncate(record, to: found.record.tableOffset + 8 * Int64(head))
        // Opened since the choice: every lookup from here on sees the short table.
        let late = state.withLock { state in
            state.entries.didChange(found.name)
            return state.open.residents[found.name]
        }
        let size = try fileSystem.status(of: body).size
        let isSame = late?.generation == slot.generation
        if size > options.headLength {
            try punchTail(
                lock,
                tail: options.headLength..<size,
                of: body,
                openedSince: isSame ? late : nil
            )
        }
        let stored = Int64(found.checksums.prefix(head).count { $0 != 0 })
        slot.recordBytes = charged(
            try fileSystem.status(of: record),
            atLeast: found.record.tableOffset + 8 * stored
        )
        slot.bodyBytes = charged(
            try fileSystem.status(of: body),
            atLeast: stored * BlockTable.blockSize
        )
    }

    private func punchTail(
        _ lock: borrowing NameLock,
        tail: Range<Int64>,
        of body: OpenFile,
        openedSince late: DiskEntry?
    ) throws(FileSystemError) {
        guard let late else { return try fileSystem.punch(body, range: tail) }
        let end = Int(clamping: BlockTable.blockCount(tail.upperBound))
        let blocks = BlockTable.block(at: tail.lowerBound)..<end
        try late.giveUp(lock, runs: [blocks]) { (free) throws(FileSystemError) in
            // Blocks being written are freed with the entry, later.
            if free == [blocks] { try fileSystem.punch(body, range: tail) }
        }
    }

    // MARK: In use

    /// Frees blocks of huge entries in use that no reader is near: the last resort.
    ///
    /// - Returns: the bytes freed.
    func giveUpColdBlocks(_ count: Int64) -> Int64 {
        var freed: Int64 = 0
        for entry in state.withLock({ $0.hugeResidents(options.hugeBody) })
        where freed < count && entry.mayBePunched {
            withLock(of: entry.name) { lock in
                do throws(FileSystemError) {
                    freed += try giveUpColdBlocks(lock, of: entry, count: count - freed)
                } catch {
                    // A guest reads it, which is no error.
                    if error.errno != .resourceBusy { self.count(\.housekeepingErrors) }
                }
            }
        }
        return freed
    }

    private func giveUpColdBlocks(
        _ lock: borrowing NameLock,
        of entry: DiskEntry,
        count: Int64
    ) throws(FileSystemError) -> Int64 {
        let runs = entry.coldRuns(count, head: Int(options.headLength / BlockTable.blockSize))
        guard !runs.isEmpty else { return 0 }
        let record = try open(entry.name.record, in: entries, mode: .readWrite)
        defer { fileSystem.close(record) }
        let body = try open(entry.name.body(entry.generation), in: entries, mode: .readWrite)
        defer { fileSystem.close(body) }
        try requireUnshared(body)
        let before = try fileSystem.status(of: body).allocatedBytes
        let table = entry.record.tableOffset
        for run in runs {
            let zeros = [UInt8](repeating: 0, count: 8 * run.count)
            try fileSystem.write(zeros, to: record, at: table + 8 * Int64(run.lowerBound))
        }
        defer {
            attempt { () throws(FileSystemError) in try charge(lock, for: entry, record: record) }
        }
        try entry.giveUp(lock, runs: runs) { (free) throws(FileSystemError) in
            for run in free {
                let start = Int64(run.lowerBound) * BlockTable.blockSize
                try fileSystem.punch(
                    body,
                    range: start..<(Int64(run.upperBound) * BlockTable.blockSize)
                )
            }
        }
        state.withLock { $0.counters.shortened += 1 }
        return before - (try fileSystem.status(of: body).allocatedBytes)
    }

    /// Takes the lock of a body until it is closed; a guest that reads it has a share.
    private func requireUnshared(_ body: OpenFile) throws(FileSystemError) {
        guard try fileSystem.lock(body) else { throw FileSystemError(.lock, errno: .resourceBusy) }
    }
}

extension DiskStore.State {
    /// Huge entries that are open and not pinned.
    fileprivate func hugeResidents(_ minimum: Int64) -> [DiskEntry] {
        open.residents.all.filter { entry in
            guard let slot = entries.index[entry.name], slot.generation == entry.generation else {
                return false
            }
            return slot.queue != .pinned && slot.bodyBytes >= minimum
        }
    }
}

extension Record {
    /// Whether blocks may be discarded: not if the path of the body was given out.
    fileprivate var canBePunched: Bool {
        !flags.contains(.inline) && !flags.contains(.handedOut) && !flags.contains(.pinned)
    }
}
