import SystemPackage

/// The result of a verification.
public struct DiskVerification: Hashable, Sendable {
    /// Entries read.
    public var entries = 0
    /// Blocks read; a block never fetched is not counted.
    public var blocks = 0
    /// Blocks and records that are damaged, and files that belong to no entry.
    public var damaged = 0
    /// How many of those were made gaps or removed.
    public var repaired = 0

    fileprivate mutating func add(_ finding: DiskFinding) {
        let count = max(finding.blocks.count, 1)
        damaged += count
        if finding.isRepaired { repaired += count }
    }
}

extension DiskStore {
    /// Reads everything that is stored and compares it with its checksums.
    ///
    /// - Parameters:
    ///   - repair: makes damaged blocks gaps, on disk too, and removes damaged records and bodies
    ///     without one. Files that cannot be read stay.
    ///   - report: gets each finding as it is made, on the calling thread; foreign files included,
    ///     which are left alone and not counted.
    /// - Returns: the counts.
    /// - Throws: ``CacheError/Code/notOwner`` where a guest would repair.
    package func verify(
        repair: Bool,
        report: (DiskFinding) -> Void = { _ in }
    ) throws(CacheError) -> DiskVerification {
        if repair { try beginWriting() }
        // Not reached where `beginWriting` throws, so that the two always come in pairs.
        defer { if repair { endWriting() } }
        // Before the index is loaded, since that sweeps.
        let scan = try scan()
        if repair { try loadIndex() }
        var result = DiskVerification()
        func tell(_ finding: DiskFinding) {
            result.add(finding)
            report(finding)
        }
        for name in scan.damaged { try verifyDamaged(name, repair: repair, tell: tell) }
        for slot in scan.withheld { tell(withheld(slot.name)) }
        for body in scan.orphans {
            let isOrphan = try withLock(of: body.name) { (lock) throws(CacheError) in
                guard try isStillOrphan(lock, body: body) else { return false }
                if repair { try removeOrphan(lock, body: body) }
                return true
            }
            if isOrphan { tell(finding(.orphanedBody, at: body.path, isRepaired: repair)) }
        }
        for slot in scan.slots {
            guard let found = recordToVerify(slot.name, tell: tell) else { continue }
            let blocks = try verify(found, repair: repair, tell: tell)
            result.entries += 1
            result.blocks += blocks
        }
        try reportQuarantine(isEmptied: repair, report)
        try reportUnaccounted(report)
        return result
    }

    private func verifyDamaged(
        _ name: EntryName,
        repair: Bool,
        tell: (DiskFinding) -> Void
    ) throws(CacheError) {
        var found: DiskFinding?
        defer { if let found { tell(found) } }
        try withLock(of: name) { (lock) throws(CacheError) in
            // It may have been read while it was being written, and be stored or gone by now.
            let now = repair ? try readRecord(of: name) : record(of: name)
            guard now == nil, isRecordThere(lock) else { return }
            found = finding(.damagedRecord, at: name.record, isRepaired: false)
            guard repair else { return }
            try removeFiles(lock)
            replace(&lock, with: nil, slot: nil, because: .corrupted)
            found?.isRepaired = true
        }
    }

    private func isRecordThere(_ lock: borrowing NameLock) -> Bool {
        do throws(FileSystemError) {
            return try fileSystem.status(of: lock.name.record, in: entries).kind != .directory
        } catch {
            return !error.isAbsence  // It cannot be told.
        }
    }

    /// Whether a body that had no record when the directory was listed is there, and still has
    /// none: it may be one that is just being made, or that was replaced since.
    private func isStillOrphan(
        _ lock: borrowing NameLock,
        body: EntryBody
    ) throws(CacheError) -> Bool {
        let isKnown = state.withLock { state in
            state.entries.charged(body.name, generation: body.generation) != nil
                || state.open.residents[body.name]?.generation == body.generation
                || state.open.successors.isWaiting(body.name, generation: body.generation)
        }
        guard !isKnown else { return false }
        if let record = try readRecord(of: body.name)?.record, record.generation == body.generation,
            !record.flags.contains(.inline)
        {
            return false
        }
        do throws(FileSystemError) {
            return try fileSystem.status(of: body.path, in: entries).kind == .file
        } catch {
            return false  // Removed meanwhile.
        }
    }

    private func removeOrphan(
        _ lock: borrowing NameLock,
        body: EntryBody
    ) throws(CacheError) {
        let isPinned = try readRecord(of: body.name)?.record.flags.contains(.pinned) ?? false
        do throws(FileSystemError) {
            try sweep(body, isPinned: isPinned)
        } catch {
            throw self.error(error, naming: "entries/\(body.path)")
        }
    }

    /// - Returns: how many blocks are stored.
    private func verify(
        _ found: RecordReader.Found,
        repair: Bool,
        tell: (DiskFinding) -> Void
    ) throws(CacheError) -> Int {
        var found = found
        var stored = 0
        // An entry that is replaced or freshened meanwhile is looked at again, a few times.
        for _ in 0..<3 {
            let (damaged, isMissing) = damagedBlocks(of: found, stored: &stored)
            guard !damaged.isEmpty else { break }
            let now = try withLock(of: found.name) {
                (lock) throws(CacheError) -> RecordReader.Found? in
                let now = recordToVerify(found.name, tell: tell)
                if repair, let now, now.isSame(as: found) {
                    try clear(lock, blocks: damaged, of: now, verified: found)
                }
                return now
            }
            guard let now else { break }
            if now.isSame(as: found) {
                let lasting = damaged.filter { found.isUnchanged($0, in: now) }
                guard !lasting.isEmpty else { break }
                let kind: DiskFinding.Kind = isMissing ? .missingBody : .damagedBlocks
                var finding = finding(kind, at: found.bodyPath, isRepaired: repair)
                finding.key = found.record.key
                finding.blocks = lasting
                tell(finding)
                break
            }
            found = now
        }
        return stored
    }

    /// The record of an entry that was there; nil if it was removed meanwhile, or if it cannot be
    /// read, which is reported.
    private func recordToVerify(
        _ name: EntryName,
        tell: (DiskFinding) -> Void
    ) -> RecordReader.Found? {
        do throws(CacheError) {
            return try readRecord(of: name)
        } catch {
            tell(withheld(name))
            return nil
        }
    }

    /// A record that cannot be read; the next attempt may succeed, so nothing is repaired.
    private func withheld(_ name: EntryName) -> DiskFinding {
        finding(.damagedRecord, at: name.record, isRepaired: false)
    }

    private func finding(
        _ kind: DiskFinding.Kind,
        at path: String,
        isRepaired: Bool
    ) -> DiskFinding {
        DiskFinding(
            kind: kind,
            path: options.root.appending("entries").appending(path),
            isRepaired: isRepaired
        )
    }

    private func damagedBlocks(
        of found: RecordReader.Found,
        stored: inout Int
    ) -> (blocks: [Int], isFileMissing: Bool) {
        let table = found.table
        stored = table.storedCount
        beginOpening(found.name)
        defer { endOpening(found.name) }
        let file = openToVerify(found.bodyPath)
        defer { if let file { fileSystem.close(file) } }
        var buffer = [UInt8](repeating: 0, count: Int(BlockTable.blockSize))
        var damaged: [Int] = []
        for block in table.checksums.indices where table.isStored(block) {
            let extent = table.extent(of: block)
            let length = Int(extent.upperBound - extent.lowerBound)
            let checksum = file.flatMap { file in
                self.checksum(
                    of: file,
                    at: found.bodyOffset + extent.lowerBound,
                    length: length,
                    buffer: &buffer
                )
            }
            if checksum != table.checksums[block] { damaged.append(block) }
        }
        return (damaged, file == nil)
    }

    private func openToVerify(_ path: String) -> OpenFile? {
        do throws(FileSystemError) {
            return try open(path, in: entries, mode: .read)
        } catch {
            return nil  // All its blocks are missing, which is what will be reported.
        }
    }

    private func checksum(
        of file: OpenFile,
        at offset: Int64,
        length: Int,
        buffer: inout [UInt8]
    ) -> UInt64? {
        do throws(FileSystemError) {
            return try buffer.withUnsafeMutableBytesThrowing { (bytes) throws(FileSystemError) in
                let part = UnsafeMutableRawBufferPointer(rebasing: bytes[..<length])
                guard try fileSystem.read(file, into: part, at: offset) == length else {
                    return nil
                }
                return blockChecksum(UnsafeRawBufferPointer(part))
            }
        } catch {
            count(\.readErrors)
            return nil
        }
    }

    /// Writes "not stored" over the checksums of damaged blocks, those apart that were stored anew
    /// or given up since they were looked at.
    private func clear(
        _ lock: borrowing NameLock,
        blocks: [Int],
        of now: RecordReader.Found,
        verified found: RecordReader.Found
    ) throws(CacheError) {
        let blocks = blocks.filter { found.isUnchanged($0, in: now) }
        if let open = state.withLock({ $0.open.residents[found.name] }),
            open.generation == found.record.generation
        {
            for block in blocks {
                // In memory first: a reader must not lease a block that the disk no longer has.
                open.lose(block)
            }
        }
        try naming(found.name) { () throws(FileSystemError) in
            let file = try open(found.name.record, in: entries, mode: .readWrite)
            defer { fileSystem.close(file) }
            for block in blocks {
                let offset = now.record.tableOffset + 8 * Int64(block)
                try fileSystem.write([UInt8](repeating: 0, count: 8), to: file, at: offset)
            }
        }
    }
}

extension RecordReader.Found {
    /// Whether both were read from one record, or from one whose body and table have stayed in
    /// place.
    fileprivate func isSame(as other: Self) -> Bool {
        record.generation == other.record.generation
            && record.tableOffset == other.record.tableOffset
            && isInline == other.isInline
    }

    fileprivate func isUnchanged(_ block: Int, in now: Self) -> Bool {
        block < now.checksums.count && checksums[block] == now.checksums[block]
    }
}
