import HTTPCaching
import Synchronization
import SystemPackage

// The last use of entries: exact in memory, written to disk now and then.
extension DiskStore {
    /// Brings the hits since the last time into the order of eviction.
    func foldUses() {
        let now = useTime()
        state.withLock { state in
            for entry in state.open.residents.all
            // A hit sets the mark and takes no lock; the time of the fold stands for that of the
            // hit.
            where entry.isUsed.exchange(false, ordering: .relaxed) {
                state.entries.touch(entry.name, at: now)
                entry.pendingUse.store(now, ordering: .relaxed)
            }
        }
    }

    /// Writes the last uses, once a minute.
    func foldUsesIfDue() {
        guard access.canWrite else { return }
        let now = timeSource.monotonicTime().nanoseconds
        if state.withLock({ $0.entries.beginFold(at: now) }) { runLater { $0.persistUses() } }
    }

    /// Writes the last use of the entries in memory.
    ///
    /// - Parameter isLast: whether nothing is written later, so that uses within the last minute
    ///   are written too.
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
        guard isUseDue(use, of: entry, isLast: isLast), lock.beginWrite() else {
            return use == entry.lastKnownUse
        }
        defer { endWriting() }
        return withLock(of: entry.name) { lock in
            let (isPublished, isDetached) = entry.state.withLock { ($0.isPublished, $0.isDetached) }
            let isCurrent = state.withLock {
                $0.entries.isCurrent(entry.name, generation: entry.generation)
            }
            guard isPublished, !isDetached, isCurrent else { return true }
            // A use that is forgotten costs at worst an early eviction.
            attempt { () throws(FileSystemError) in
                try writeLastUse(lock, use: use, of: entry)
                entry.persistedUse.store(use, ordering: .relaxed)
            }
            return true
        }
    }

    /// Whether a use is to be written: a minute after the last one that was, or any other one at
    /// the end.
    func isUseDue(_ use: UInt64, of entry: DiskEntry, isLast: Bool = false) -> Bool {
        let last = entry.lastKnownUse
        // `last > use` where the wall clock was set back: else nothing would be written for years.
        return isLast ? use != last : use >= last &+ 60_000_000_000 || last > use
    }

    private func writeLastUse(
        _ lock: borrowing NameLock,
        use: UInt64,
        of entry: DiskEntry
    ) throws(FileSystemError) {
        let file = try openFile(entry.name.record, in: entries, mode: .readWrite)
        defer { fileSystem.close(file) }
        let isVerified = try isAsVerified(lock, file: file, of: entry)
        try writeLastUse(lock, use: use, to: file)
        if isVerified { try didChangeRecord(lock, file: file, of: entry) }
    }

    /// Whether a record that was opened by its name is the file whose body was verified, unchanged
    /// since; true where it has no body.
    func isAsVerified(
        _ lock: borrowing NameLock,
        file: OpenFile,
        of entry: DiskEntry
    ) throws(FileSystemError) -> Bool {
        let (isInline, verification) = entry.state.withLock { ($0.isInline, $0.verification) }
        guard isInline else { return true }
        return try fileSystem.status(of: file).verification == verification
    }

    /// The record was changed in place: what was verified of a body in the same file stays so.
    ///
    /// Only after ``isAsVerified(_:file:of:)``, or the bytes of another program would count as
    /// verified.
    func didChangeRecord(
        _ lock: borrowing NameLock,
        file: OpenFile,
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
        use: UInt64,
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
                let file = try openFile(found.name.record, in: entries, mode: .readWrite)
                defer { fileSystem.close(file) }
                try writeLastUse(lock, use: found.record.lastUse, to: file)
            }
        }
    }
}

extension DiskEntry {
    /// The last use in the record, from which later uses are told.
    ///
    /// A new entry counts as used when it was made, except a prefetched one: its first use changes
    /// its class.
    fileprivate var lastKnownUse: UInt64 {
        let written = persistedUse.load(ordering: .relaxed)
        let isPrefetched = state.withLock { $0.flags.contains(.prefetched) }
        return isPrefetched ? written : max(written, UInt64(clamping: created.nanoseconds))
    }
}
