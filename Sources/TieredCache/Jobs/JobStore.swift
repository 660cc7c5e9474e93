import HTTPCaching
import SystemPackage

/// The job records of one cache directory: `jobs/<16 hex>.job`, each replaced as a whole.
///
/// Calls block on the disk. One writer at a time per job; the newest record wins.
struct JobStore: Sendable {
    private static let directory = "jobs"
    private static let suffix = ".job"
    private static let temporarySuffix = ".job.new"

    private let store: DiskStore

    init(_ store: DiskStore) {
        self.store = store
    }

    /// Every readable record, in the order of submission; unreadable files stay.
    ///
    /// - Throws: `.localStorage` if the directory cannot be listed.
    func load() throws(CacheError) -> [JobRecord] {
        do throws(FileSystemError) {
            let names = try inDirectory(creating: false) { (jobs) throws(FileSystemError) in
                try store.fileSystem.list(jobs).filter { $0.kind == .file }.map(\.name)
            }
            let ids = (names ?? []).compactMap(Self.id)
            return ids.compactMap(record).sorted {
                ($0.created.nanoseconds, $0.id.number) < ($1.created.nanoseconds, $1.id.number)
            }
        } catch {
            throw store.error(error, naming: Self.directory)
        }
    }

    /// Writes the latest record, or deletes it if `latest` returns nil.
    ///
    /// - Throws: `.notOwner`, `.localStorage`; the record on disk is then the previous one.
    func save(_ id: DownloadID, latest: () -> JobRecord?) throws(CacheError) {
        try store.beginWriting()
        defer { store.endWriting() }
        try store.jobs.withLock(of: id.number) { () throws(CacheError) in
            guard let record = latest() else { return try remove(id) }
            let bytes = record.encoded
            guard bytes.count <= JobRecord.maximumSize else {
                throw CacheError(.invalidArgument, "the request is too large for a job's record")
            }
            let cost = DiskStore.cost(bytes.count)
            try store.reserve(cost, for: nil)
            defer { store.endReservation(cost) }
            try replace(id, with: bytes)
        }
    }

    // MARK: Files

    private func record(_ id: DownloadID) -> JobRecord? {
        do throws(FileSystemError) {
            let bytes = try inDirectory(creating: false) { (jobs) throws(FileSystemError) in
                try read("\(id)\(Self.suffix)", in: jobs)
            }
            guard let record = bytes.flatMap({ JobRecord(encoded: $0) }), record.id == id else {
                store.count(\.damagedRecords)
                return nil
            }
            return record
        } catch {
            store.count(\.readErrors)
            return nil
        }
    }

    private func read(_ name: String, in jobs: OpenFile) throws(FileSystemError) -> [UInt8] {
        let file = try store.fileSystem.open(name, in: jobs, mode: .read)
        defer { store.fileSystem.close(file) }
        // A damaged file may be of any size.
        let size = Int(min(try store.fileSystem.status(of: file).size, 4 << 20))
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try store.fileSystem.read(file, into: buffer, at: 0)
        }
        return Array(bytes[..<count])
    }

    private func replace(_ id: DownloadID, with bytes: [UInt8]) throws(CacheError) {
        let (name, temporary) = ("\(id)\(Self.suffix)", "\(id)\(Self.temporarySuffix)")
        do throws(FileSystemError) {
            try inDirectory(creating: true) { (jobs) throws(FileSystemError) in
                let before = allocated(name, in: jobs)
                let file = try store.fileSystem.open(temporary, in: jobs, mode: .openOrCreate)
                defer { store.fileSystem.close(file) }
                try store.fileSystem.truncate(file, to: 0)
                try store.fileSystem.write(bytes, to: file, at: 0)
                try store.fileSystem.rename(temporary, in: jobs, to: name, in: jobs)
                charge(allocated(name, in: jobs) - before)
            }
        } catch {
            throw store.error(error, naming: "\(Self.directory)/\(name)")
        }
    }

    private func remove(_ id: DownloadID) throws(CacheError) {
        let name = "\(id)\(Self.suffix)"
        do throws(FileSystemError) {
            try inDirectory(creating: false) { (jobs) throws(FileSystemError) in
                let before = allocated(name, in: jobs)
                do throws(FileSystemError) {
                    try store.fileSystem.unlink(name, in: jobs)
                } catch  where error.errno == .noSuchFileOrDirectory {
                    return
                }
                charge(-before)
            }
        } catch {
            throw store.error(error, naming: "\(Self.directory)/\(name)")
        }
    }

    private func charge(_ delta: Int64) {
        store.state.withLock { $0.space.charge(delta) }
    }

    private func allocated(_ name: String, in jobs: OpenFile) -> Int64 {
        do throws(FileSystemError) {
            return try store.fileSystem.status(of: name, in: jobs)
                .denseBytes(atMost: Int64(JobRecord.maximumSize))
        } catch {
            return 0  // The file does not exist.
        }
    }

    /// - Returns: nil if the directory does not exist and is not created.
    @discardableResult
    private func inDirectory<Result>(
        creating: Bool,
        _ body: (OpenFile) throws(FileSystemError) -> Result
    ) throws(FileSystemError) -> Result? {
        guard let jobs = try openDirectory(creating: creating) else { return nil }
        defer { store.fileSystem.close(jobs) }
        return try body(jobs)
    }

    private func openDirectory(creating: Bool) throws(FileSystemError) -> OpenFile? {
        do throws(FileSystemError) {
            return try store.fileSystem.open(Self.directory, in: store.root, mode: .directory)
        } catch  where error.errno == .noSuchFileOrDirectory {
            guard creating else { return nil }
        }
        do throws(FileSystemError) {
            try store.fileSystem.makeDirectory(Self.directory, in: store.root)
        } catch  where error.errno == .fileExists {
            // Another job has created it first.
        }
        return try store.fileSystem.open(Self.directory, in: store.root, mode: .directory)
    }

    private static func id(_ name: String) -> DownloadID? {
        guard name.hasSuffix(suffix) else { return nil }
        return DownloadID(String(name.dropLast(suffix.count)))
    }
}
