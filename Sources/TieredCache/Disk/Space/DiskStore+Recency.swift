import HTTPCaching
import Synchronization
import SystemPackage

// When entries were used last: exact in memory, written down now and then.
extension DiskStore {
    /// Brings the hits since the last time into the order of eviction.
    func foldUses() {
        let now = useTime()
        state.withLock { state in
            for entry in state.open.residents.all
            where entry.isUsed.exchange(false, ordering: .relaxed) {
                state.entries.touch(entry.name, at: now)
                entry.pendingUse.store(now, ordering: .relaxed)
            }
        }
    }

    /// Once a minute, on a call that may block: writes recency down.
    func foldUsesIfDue() {
        guard access.canWrite else { return }
        let now = timeSource.monotonicTime().nanoseconds
        if state.withLock({ $0.entries.beginFold(at: now) }) { persistUses() }
    }

    /// Writes down when the entries in memory were last used.
    ///
    /// - Parameter isLast: nothing is written later, so that also uses within the last minute
    ///   count.
    func persistUses(isLast: Bool = false) {
        guard access.canWrite, lock.beginWrite() else { return }
        defer { endWriting() }
        foldUses()
        for entry in state.withLock({ $0.open.residents.all }) {
            let use = entry.pendingUse.load(ordering: .relaxed)
            guard use > 0, persistUse(of: entry, use, isLast: isLast) else { continue }
            // A use meanwhile stays pending.
            _ = entry.pendingUse.compareExchange(expected: use, desired: 0, ordering: .relaxed)
        }
    }

    /// Writes the last use into the record, at most once a minute per entry.
    ///
    /// - Returns: whether there is nothing left to write.
    @discardableResult
    func persistUse(of entry: DiskEntry, _ use: UInt64, isLast: Bool = false) -> Bool {
        let last = entry.lastKnownUse
        let isDue = isLast ? use != last : use >= last &+ 60_000_000_000 || last > use
        guard isDue, lock.beginWrite() else { return use == last }
        defer { endWriting() }
        return withLock(of: entry.name) { lock in
            let (isPublished, isDetached) = entry.state.withLock { ($0.isPublished, $0.isDetached) }
            let isCurrent = state.withLock { $0.entries.isCurrent(entry.name, entry.generation) }
            guard isPublished, !isDetached, isCurrent else { return true }
            // A use that is forgotten costs at worst an early eviction.
            attempt { () throws(FileSystemError) in
                try writeLastUse(lock, use, entry)
                entry.persistedUse.store(use, ordering: .relaxed)
            }
            return true
        }
    }

    private func writeLastUse(
        _ lock: borrowing NameLock,
        _ use: UInt64,
        _ entry: DiskEntry
    ) throws(FileSystemError) {
        let file = try openFile(entry.name.record, in: entries, .readWrite)
        defer { fileSystem.close(file) }
        let isVerified = try isAsVerified(lock, file, entry)
        try writeLastUse(lock, use, to: file)
        if isVerified { try didChangeRecord(lock, file, of: entry) }
    }

    /// Whether a record that was opened by its name is the file whose body was verified, unchanged
    /// since; true where it has no body.
    func isAsVerified(
        _ lock: borrowing NameLock,
        _ file: OpenFile,
        _ entry: DiskEntry
    ) throws(FileSystemError) -> Bool {
        let (isInline, verification) = entry.state.withLock { ($0.isInline, $0.verification) }
        guard isInline else { return true }
        return try fileSystem.status(of: file).verification == verification
    }

    /// The record was changed in place: what was verified of a body in the same file stays so.
    ///
    /// Only after ``isAsVerified(_:_:_:)``, or the bytes of another program would count as
    /// verified.
    func didChangeRecord(
        _ lock: borrowing NameLock,
        _ file: OpenFile,
        of entry: DiskEntry
    ) throws(FileSystemError) {
        guard entry.state.withLock({ $0.isInline }) else { return }
        let verification = try fileSystem.status(of: file).verification
        entry.state.withLock { $0.verification = verification }
        state.withLock { state in
            _ = state.entries.index.update(entry.name, generation: entry.generation) { slot in
                if slot.verification != 0 { slot.verification = verification }
            }
        }
    }

    /// Writes the word, and makes the record a current one if it is older: its last use is in other
    /// units there, so both are one write.
    private func writeLastUse(
        _ lock: borrowing NameLock,
        _ use: UInt64,
        to file: OpenFile
    ) throws(FileSystemError) {
        var head = [UInt8](repeating: 0, count: 24)
        let count = try head.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try fileSystem.read(file, into: buffer, at: 0)
        }
        guard count == head.count, let version = head.withUnsafeBytes(Record.version(of:)) else {
            return  // Not a record any more.
        }
        head.withUnsafeMutableBytes { head in
            head.put(Record.magic, at: 0)
            head.put(use, at: Int(Record.lastUseOffset))
        }
        let start = version < DiskDirectory.formatVersion ? 0 : Int(Record.lastUseOffset)
        try fileSystem.write(Array(head[start...]), to: file, at: Int64(start))
    }

    /// Makes a record of an older version a current one, its body untouched.
    func upgrade(_ found: RecordReader.Found) {
        guard lock.beginWrite() else { return }
        defer { endWriting() }
        withLock(of: found.name) { lock -> Void in
            // Else it stays readable as it is, and is tried again at the next start.
            attempt { () throws(FileSystemError) in
                let file = try openFile(found.name.record, in: entries, .readWrite)
                defer { fileSystem.close(file) }
                try writeLastUse(lock, found.record.lastUse, to: file)
            }
        }
    }
}

extension DiskEntry {
    /// What the record says, by which later uses are told from earlier ones.
    ///
    /// What was made counts as used then, but for what was prefetched: its first use changes its
    /// class.
    fileprivate var lastKnownUse: UInt64 {
        let written = persistedUse.load(ordering: .relaxed)
        let isPrefetched = state.withLock { $0.flags.contains(.prefetched) }
        return isPrefetched ? written : max(written, UInt64(clamping: created.nanoseconds))
    }
}
