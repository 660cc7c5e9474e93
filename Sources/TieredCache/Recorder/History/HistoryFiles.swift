import SystemPackage

/// The files with a directory's history: STATS, EVENTS, and EVENTS.1, the last full EVENTS.
///
/// Hints like the index: any of them may be missing or wrong. Calls block on the disk; one thread
/// at a time may write. Space for them is reserved as long as the directory is owned, so that
/// writing needs none: see ``reserveSpace()``.
struct HistoryFiles: Sendable {
    let store: DiskStore

    /// The maximum length of EVENTS in bytes.
    ///
    /// A 512th of the limit, at most 1 MiB; without a history if that is less than a page.
    static func maximumEventLength(limit: Int64) -> Int64 {
        min(limit / 512, 1 << 20) / 4096 * 4096
    }

    private var maximumEventLength: Int64 {
        Self.maximumEventLength(limit: store.options.limit)
    }

    /// Whether there is space for a history.
    var isKept: Bool { maximumEventLength > 0 }

    /// Reserves the space that the files may grow to.
    func reserveSpace() {
        // Both parts of the log, and STATS twice while it is replaced.
        let most = 2 * (maximumEventLength + 4096) + 2 * 8192
        let present = HistoryFile.names.reduce(0) { $0 + allocated($1) }
        store.state.withLock { $0.space.setAside(max(0, most - present)) }
    }

    // MARK: Counters

    /// The counters in STATS.
    ///
    /// - Returns: nil if there is none.
    /// - Throws: `.localStorage` if it cannot be read, or is damaged.
    func loadStatistics() throws(CacheError) -> MediaCache.LifetimeStatistics? {
        do throws(FileSystemError) {
            guard
                let bytes = try read(
                    HistoryFile.statistics,
                    atMost: StatisticsRecord.maximumLength + 1
                )
            else { return nil }
            if let found = StatisticsRecord.decode(bytes) { return found }
        } catch {
            throw store.error(error, naming: HistoryFile.statistics)
        }
        store.count(\.damagedRecords)
        throw CacheError(.localStorage, "the statistics of \(store.options.root) are damaged")
    }

    /// Replaces STATS.
    func save(_ lifetime: MediaCache.LifetimeStatistics) throws(CacheError) {
        try store.beginWriting()
        defer { store.endWriting() }
        guard let staging = store.staging else { return }
        do throws(FileSystemError) {
            let before = allocated(HistoryFile.statistics)
            let file = try store.open(HistoryFile.statistics, in: staging, mode: .openOrCreate)
            defer { store.fileSystem.close(file) }
            try store.fileSystem.truncate(file, to: 0)
            try store.fileSystem.write(StatisticsRecord.encode(lifetime), to: file, at: 0)
            let bytes = HistoryFile.chargedBytes(try store.fileSystem.status(of: file))
            try store.fileSystem.rename(
                HistoryFile.statistics,
                in: staging,
                to: HistoryFile.statistics,
                in: store.root
            )
            charge(bytes - before)
        } catch {
            throw store.error(error, naming: HistoryFile.statistics)
        }
    }

    // MARK: Events

    /// Appends lines; starts a new EVENTS if they would not fit.
    func append(_ lines: [UInt8]) throws(CacheError) {
        guard Int64(lines.count) <= maximumEventLength else { return }
        try store.beginWriting()
        defer { store.endWriting() }
        do throws(FileSystemError) {
            var file = try store.open(HistoryFile.events, in: store.root, mode: .openOrCreate)
            defer { store.fileSystem.close(file) }
            var status = try store.fileSystem.status(of: file)
            guard status.kind == .file else { throw FileSystemError(.write, errno: .notSupported) }
            if status.size + Int64(lines.count) > maximumEventLength, status.size > 0 {
                let older = allocated(HistoryFile.olderEvents)
                try store.fileSystem.rename(
                    HistoryFile.events,
                    in: store.root,
                    to: HistoryFile.olderEvents,
                    in: store.root
                )
                charge(-older)
                let next = try store.open(HistoryFile.events, in: store.root, mode: .createNew)
                store.fileSystem.close(file)
                file = next
                status = try store.fileSystem.status(of: file)
            }
            let start = try isTorn(file, size: status.size) ? Self.endOfTorn + lines : lines
            defer { chargeGrowth(of: file, since: HistoryFile.chargedBytes(status)) }
            try store.fileSystem.write(start, to: file, at: status.size)
        } catch {
            throw store.error(error, naming: HistoryFile.events)
        }
    }

    /// Turns a line that was cut anywhere into one that is no event, even if only its URL was cut.
    private static let endOfTorn = Array(" - -\n".utf8)

    /// Whether the last line has no newline, because the process was killed or the power failed.
    private func isTorn(_ file: OpenFile, size: Int64) throws(FileSystemError) -> Bool {
        guard size > 0 else { return false }
        var last = [UInt8](repeating: UInt8(ascii: "\n"), count: 1)
        _ = try last.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try store.fileSystem.read(file, into: buffer, at: size - 1)
        }
        return last != [UInt8(ascii: "\n")]
    }

    /// Every readable event in the order of the file: oldest first.
    func loadEvents() throws(CacheError) -> [MediaCache.RecordedEvent] {
        var result: [MediaCache.RecordedEvent] = []
        for name in [HistoryFile.olderEvents, HistoryFile.events] {
            do throws(FileSystemError) {
                let bytes = try read(name, atMost: 2 << 20) ?? []
                // A line without a newline was cut.
                let end = bytes.lastIndex(of: UInt8(ascii: "\n")) ?? 0
                let lines = bytes[..<end].split(separator: UInt8(ascii: "\n"))
                result += lines.compactMap {
                    MediaCache.RecordedEvent(line: String(decoding: $0, as: UTF8.self))
                }
            } catch {
                throw store.error(error, naming: name)
            }
        }
        return result
    }

    // MARK: Files

    /// - Returns: nil if there is no file with that name.
    private func read(_ name: String, atMost count: Int) throws(FileSystemError) -> [UInt8]? {
        do throws(FileSystemError) {
            let file = try store.open(name, in: store.root, mode: .read)
            defer { store.fileSystem.close(file) }
            let status = try store.fileSystem.status(of: file)
            guard status.kind == .file else { return nil }
            var bytes = [UInt8](repeating: 0, count: Int(min(status.size, Int64(count))))
            let read = try bytes.withUnsafeMutableBytesThrowing {
                (buffer) throws(FileSystemError) in
                try store.fileSystem.read(file, into: buffer, at: 0)
            }
            return Array(bytes[..<read])
        } catch  where error.isAbsence {
            return nil
        }
    }

    private func allocated(_ name: String) -> Int64 {
        do throws(FileSystemError) {
            let status = try store.fileSystem.status(of: name, in: store.root)
            return status.kind == .file ? HistoryFile.chargedBytes(status) : 0
        } catch {
            return 0  // The file does not exist.
        }
    }

    private func chargeGrowth(of file: OpenFile, since before: Int64) {
        do throws(FileSystemError) {
            charge(HistoryFile.chargedBytes(try store.fileSystem.status(of: file)) - before)
        } catch {
            store.count(\.housekeepingErrors)
        }
    }

    /// Charges growth against the reserved space.
    private func charge(_ delta: Int64) {
        store.state.withLock { state in
            state.space.charge(delta)
            state.space.setAside(-delta)
        }
    }
}
