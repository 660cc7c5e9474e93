import Synchronization
import SystemPackage

extension DiskStore {
    /// Opens the files that a write needs.
    func prepareForWriting(_ entry: DiskEntry) throws(CacheError) {
        entry.state.withLock { state in
            guard state.isInline, !state.table.isComplete else { return }
            // An inline body that was found damaged is written anew, as a body of its own.
            state.retireInlineBody()
            state.isPublished = false
        }
        try naming(entry.name) { () throws(FileSystemError) in
            try withLock(of: entry.name) { (lock) throws(FileSystemError) in
                try makeBodyWritable(lock, of: entry)
            }
        }
        entry.refreshHotBody()
    }

    private func makeBodyWritable(
        _ lock: borrowing NameLock,
        of entry: DiskEntry
    ) throws(FileSystemError) {
        let needsFile = entry.state.withLock { state in
            state.body != nil && !state.isBodyWritable && !state.isInline && !state.isDetached
        }
        guard needsFile else { return }
        let file = try openFile(
            entry.name.body(entry.generation),
            in: entries,
            mode: .readWrite
        )
        entry.state.withLock { state in
            state.setBody(file)
            state.isBodyWritable = true
        }
    }

    /// Writes blocks of an entry, then their checksums.
    func write(
        _ bytes: UnsafeRawBufferPointer,
        blocks: Range<Int>,
        of entry: DiskEntry,
        within promise: RoomPromise?
    ) throws(CacheError) {
        try beginWriting()
        defer { endWriting() }
        try checkEnd(Int64(blocks.lowerBound) * BlockTable.blockSize, adding: bytes.count)
        if entry.isWholeBody(bytes.count, limit: options.inlineLimit) {
            return try storeInline(bytes, in: entry)
        }
        let cost = Self.cost(bytes.count) + entry.recordCost(upTo: blocks.upperBound)
        let checksums = Self.checksums(bytes)
        try reserving(cost, forBytes: bytes.count, of: entry.name, within: promise) {
            () throws(CacheError) in
            try sparingRoom(cost) { () throws(CacheError) in
                try write(bytes, blocks: blocks, checksums: checksums, of: entry)
            }
        }
        entry.refreshHotBody()
        if try entry.takeNameUnlessJudged() { return }
        try syncIfPinned(entry)
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer,
        blocks: Range<Int>,
        checksums: [UInt64],
        of entry: DiskEntry
    ) throws(CacheError) {
        let file = try bodyFile(of: entry)
        do throws(FileSystemError) {
            let offset = Int64(blocks.lowerBound) * BlockTable.blockSize
            // A hole that a write behind a truncated end makes would count as what was there.
            entry.loseBehindEnd(of: file)
            if entry.isSendingBehindEnd(of: file) {
                throw FileSystemError(.write, errno: .resourceBusy)
            }
            try fileSystem.write(bytes, to: file, at: offset)
            entry.state.withLock { state in
                for (block, checksum) in zip(blocks, checksums) {
                    state.table.insert(block, checksum: checksum)
                }
                state.didChangeBytes(of: entry)
            }
            try withLock(of: entry.name) { (lock) throws(FileSystemError) in
                try record(&lock, blocks: blocks, checksums: checksums, of: entry)
            }
            entry.state.withLock { $0.changes += 1 }
        } catch {
            // No record speaks of them: another attempt writes them again.
            entry.state.withLock { state in
                for block in blocks { state.table.lose(block) }
            }
            entry.refreshHotBody()
            chargeAfterFailure(entry, wrote: bytes.count)
            throw entryError(error, naming: entry.name)
        }
    }

    /// The file for the body's bytes, created at the first block.
    private func bodyFile(of entry: DiskEntry) throws(CacheError) -> OpenFile {
        if let file = entry.state.withLock({ $0.body }) { return file }
        return try naming(entry.name) { () throws(FileSystemError) in
            try withLock(of: entry.name) { (lock) throws(FileSystemError) in
                try bodyFile(lock, of: entry)
            }
        }
    }

    func bodyFile(
        _ lock: borrowing NameLock,
        of entry: DiskEntry
    ) throws(FileSystemError) -> OpenFile {
        if let file = entry.state.withLock({ $0.body }) { return file }
        let path = entry.name.body(entry.generation)
        // An earlier body of this generation can only be one that was given up as damaged.
        try fileSystem.unlinkIfPresent(path, in: entries)
        let file = try create(lock, at: path, in: entries) { _ in }.file
        if entry.isSuperseded { try fileSystem.unlinkIfPresent(path, in: entries) }
        entry.state.withLock { state in
            state.body = file
            state.isBodyWritable = true
        }
        return file
    }

    private static func checksums(_ bytes: UnsafeRawBufferPointer) -> [UInt64] {
        let size = Int(BlockTable.blockSize)
        return stride(from: 0, to: bytes.count, by: size).map { start in
            let end = min(start + size, bytes.count)
            return blockChecksum(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        }
    }

    // MARK: Records

    private func record(
        _ lock: inout NameLock,
        blocks: Range<Int>,
        checksums: [UInt64],
        of entry: DiskEntry
    ) throws(FileSystemError) {
        let (isDetached, isPublished) = entry.state.withLock { ($0.isDetached, $0.isPublished) }
        // A successor has a record only once it is complete.
        if entry.isSuccessor {
            return chargeDetached(lock, for: entry, bytes: try bodyBytes(of: entry))
        }
        if isDetached {
            // Removed while it was being filled; a body created meanwhile must not keep its name.
            try fileSystem.unlinkIfPresent(entry.name.body(entry.generation), in: entries)
            return chargeDetached(lock, for: entry, bytes: try bodyBytes(of: entry))
        }
        if isPublished {
            let file = try tableFile(lock, of: entry)
            let offset = entry.record.tableOffset + 8 * Int64(blocks.lowerBound)
            try fileSystem.write(Self.encode(checksums), to: file, at: offset)
            return try charge(lock, for: entry, record: file)
        }
        let head = entry.record.encode(table: entry.state.withLock { $0.table.checksums })
        let bodyBytes = try bodyBytes(of: entry)
        let (file, status) = try createRecord(lock, of: entry, head: head)
        entry.state.withLock { state in
            state.setRecord(lock, to: file)
            state.isPublished = true
        }
        publish(&lock, of: entry, record: status, bodyBytes: bodyBytes)
    }

    private static func encode(_ checksums: [UInt64]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 8 * checksums.count) { buffer, count in
            count = 8 * checksums.count
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            for (index, checksum) in checksums.enumerated() {
                bytes.put(checksum, at: 8 * index)
            }
        }
    }

    private func tableFile(
        _ lock: borrowing NameLock,
        of entry: DiskEntry
    ) throws(FileSystemError) -> OpenFile {
        if let file = entry.state.withLock({ $0.record }) { return file }
        let file = try openFile(entry.name.record, in: entries, mode: .readWrite)
        entry.state.withLock { _ = $0.setRecord(lock, to: file) }
        return file
    }

    // MARK: The end

    /// Closes the file that checksums are written to, once none are written any more.
    func didEndWriting(of entry: DiskEntry) {
        withLock(of: entry.name) { lock in
            let file = entry.state.withLock { state in
                state.tails.isEmpty ? state.setRecord(lock, to: nil) : nil
            }
            if let file { fileSystem.close(file) }
        }
    }
}

extension DiskEntry {
    /// The record as it would be written now.
    var record: Record { state.withLock { record(of: $0) } }

    /// The record of a state of the entry.
    func record(of state: DiskEntryState) -> Record {
        Record(
            key: key,
            metadata: state.metadata,
            generation: generation,
            completeLength: state.table.completeLength,
            created: created,
            flags: state.flags,
            lastUse: persistedUse.load(ordering: .relaxed)
        )
    }

    /// The bytes by which the record may grow once the blocks up to `end` are stored.
    fileprivate func recordCost(upTo end: Int) -> Int64 {
        state.withLock { state in
            // The checksums of one write are less than a page, on two at most.
            guard !state.isPublished else { return DiskStore.cost(8192) }
            let table = 8 * max(end, state.table.checksums.count)
            return DiskStore.cost(state.headLength(of: key) + table)
        }
    }

    /// Whether `count` bytes are a whole small body of which nothing is on disk yet.
    func isWholeBody(_ count: Int, limit: Int) -> Bool {
        state.withLock { state in
            state.body == nil && !state.isPublished && count <= limit && !state.awaitsDecision
                && state.table.completeLength == Int64(count)
        }
    }

    func didStoreInline(
        in file: OpenFile,
        at offset: Int64,
        checksum: UInt64,
        status: FileStatus
    ) {
        state.withLock { state in
            state.setBody(file, at: offset)
            state.flags.insert(.inline)
            state.isPublished = true
            state.changes += 1
            state.verification = status.verification
            if state.table.completeLength != 0 { state.table.insert(0, checksum: checksum) }
            state.didChangeBytes(of: self)
        }
        refreshHotBody()
    }
}

extension BodyWriter {
    /// Writes all of a buffer.
    func writeAndEnd(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        defer { end() }
        try write(bytes)
    }
}

extension DiskEntryState {
    /// Gives up a damaged inline body; what is fetched for it becomes a body of its own.
    ///
    /// The record's file stays open for reads under way.
    fileprivate mutating func retireInlineBody() {
        flags.remove(.inline)
        let hadBody = body != nil
        setBody(nil)
        guard hadBody else { return }
        if isDetached {
            retiredBytes += detachedBytes
            detachedBytes = 0
        } else {
            hasRetiredRecord = true
        }
    }
}

extension Record.Flags {
    var queue: DiskIndex.Queue {
        if contains(.pinned) { return .pinned }
        return contains(.prefetched) ? .prefetched : .used
    }
}
