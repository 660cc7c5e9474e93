import HTTPCaching
import SystemPackage

// Not every file system reports the allocation of a file right after a write: ZFS shows it some
// seconds later, XFS allocates more than was written and takes that back when the file is closed.
// So a young file is charged with at least the bytes written to it, and the charge of a file with
// an odd allocation is corrected when its entry leaves memory.
extension DiskStore {
    /// From this age on a file shows what it is allocated, in nanoseconds.
    private static let settlingTime: Int64 = 30_000_000_000

    /// The bytes charged for a file.
    ///
    /// - Parameters:
    ///   - status: its status.
    ///   - written: the bytes of the file that are no hole.
    /// - Returns: its allocation, corrected for young files.
    func charged(_ status: FileStatus, atLeast written: Int64) -> Int64 {
        let now = timeSource.wallTime().nanoseconds
        let (age, overflow) = now.subtractingReportingOverflow(status.modified)
        if !overflow, age > Self.settlingTime { return status.allocatedBytes }
        // A write that a kill has cut left less than the record says, and the size tells.
        return max(status.allocatedBytes, FileStatus.wholePages(min(written, status.size)))
    }

    /// The bytes charged for a record; notes an odd allocation.
    func chargedRecord(_ status: FileStatus, of entry: DiskEntry) -> Int64 {
        entry.note(status, written: entry.written.record)
        return charged(status, atLeast: entry.written.record)
    }

    /// The bytes charged for a body file; notes an odd allocation.
    func chargedBody(_ status: FileStatus, of entry: DiskEntry) -> Int64 {
        entry.note(status, written: entry.written.body)
        return charged(status, atLeast: entry.written.body)
    }

    /// Corrects the charge of an entry that leaves memory.
    func settle(_ entry: DiskEntry) {
        guard entry.mustSettle, lock.beginWrite() else { return }
        defer { endWriting() }
        // Preallocated bytes are freed with the last descriptor.
        if let file = entry.giveUpBody() { fileSystem.close(file) }
        withLock(of: entry.name) { lock in
            guard entry.mustSettle else { return }
            // Where it fails, it stays charged as it was written.
            attempt { () throws(FileSystemError) in
                let record = try fileSystem.status(of: entry.name.record, in: entries)
                let recordBytes = charged(record, atLeast: entry.written.record)
                var bodyBytes: Int64 = 0
                if !entry.state.withLock({ $0.isInline }) {
                    let path = entry.name.body(entry.generation)
                    let body = try fileSystem.status(of: path, in: entries)
                    bodyBytes = charged(body, atLeast: entry.written.body)
                }
                charge(lock, for: entry, recordBytes: recordBytes, bodyBytes: bodyBytes)
            }
        }
    }
}

extension DiskEntry {
    /// The bytes of its files that are no hole.
    var written: (record: Int64, body: Int64) {
        state.withLock { state in
            let head = Int64(state.headLength(of: key)) + 8 * Int64(state.table.storedCount)
            guard state.isInline else { return (head, state.table.storedBytes) }
            return (head + (state.table.completeLength ?? 0), 0)
        }
    }

    /// The largest difference between the allocation and the bytes written that rounding explains.
    private static let slack: Int64 = 2 * BlockTable.blockSize

    fileprivate func note(_ status: FileStatus, written: Int64) {
        let isOdd =
            status.allocatedBytes < written || status.allocatedBytes - written > Self.slack
        if isOdd { state.withLock { $0.isUnsettled = true } }
    }

    var mustSettle: Bool {
        state.withLock { $0.isUnsettled && $0.isPublished && !$0.isDetached }
    }

    /// Takes the body's file from an entry that is in use no longer, where a record speaks of it.
    func giveUpBody() -> OpenFile? {
        state.withLock { state in
            guard state.isPublished, !state.isDetached else { return nil }
            let file = state.body
            state.body = nil
            refreshHotBody(&state)
            return file
        }
    }
}
