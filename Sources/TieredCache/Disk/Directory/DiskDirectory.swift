import HTTPCaching
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A cache directory that was checked, locked and made ready; see docs/disk-format.md.
struct DiskDirectory {
    static let formatVersion = 2

    let fileSystem: any FileSystem
    let root: OpenFile
    private(set) var access: DiskAccess = .owner
    private(set) var entries: OpenFile?
    private(set) var staging: OpenFile?
    private(set) var lockFile: OpenFile?
    /// Identities by which an owner checks that the directory is still there.
    private(set) var ownNames = OwnNames()
    private(set) var minimumFree: Int64 = 0
    /// The limit, after a look at the volume.
    private(set) var limit: Int64
    /// The claim of the previous owner, if there is one.
    private(set) var claim: Int64?
    /// The bytes allocated for FORMAT, LOCK and the records of jobs.
    private(set) var fixedBytes: Int64 = 0
    /// The bytes allocated for quarantined files, a part of ``fixedBytes``.
    private(set) var quarantinedBytes: Int64 = 0

    private let path: FilePath

    /// Opens a directory, making it where it does not exist.
    init(_ options: DiskStoreOptions, fileSystem: any FileSystem) throws(CacheError) {
        self.fileSystem = fileSystem
        path = options.root
        limit = options.limit
        do throws(FileSystemError) {
            root = try fileSystem.openRoot(options.root, creating: true)
        } catch {
            throw CacheError(error, path: options.root)
        }
        do throws(CacheError) {
            try open(options)
        } catch {
            closeAll()
            throw error
        }
    }

    private mutating func open(_ options: DiskStoreOptions) throws(CacheError) {
        let version = try checkFormat()
        if options.isReader { lookForOwner() } else { try takeLock() }
        do throws(FileSystemError) {
            if access.canWrite {
                try makeDirectories()
                if version != Self.formatVersion { try writeFormat(replacing: version != nil) }
                sweepStaging()
            }
            entries = try ifPresent { () throws(FileSystemError) in
                try fileSystem.open("entries", in: root, mode: .directory)
            }
            if access.canWrite {
                if let lockFile { try ownNames.add("LOCK", file: lockFile, fileSystem: fileSystem) }
                if let entries {
                    try ownNames.add("entries", file: entries, fileSystem: fileSystem)
                    // Beside many deleted files ext4 is slow to make one: it looks at each of the
                    // last minute that lies near by.
                    fileSystem.spread(entries)
                }
                sweepQuarantine()
                sweepHistory()
            }
            quarantinedBytes = allocated(in: Self.quarantine, where: \.isQuarantined)
            fixedBytes =
                quarantinedBytes + allocated("FORMAT") + allocated("LOCK")
                + allocated(IndexSnapshot.name) + allocated("PROXY") + allocated("SERVING")
                + allocatedByHistory()
                // See docs/jobs-format.md.
                + allocated(in: "jobs") { $0.kind == .file }
            let volume = try fileSystem.volume(of: root)
            minimumFree = options.minimumFree ?? min(256 << 20, volume.total / 20)
            if let percentage = options.maximumVolumePercentage {
                let part = volume.total / 100 * Int64(min(max(percentage, 0), 100))
                limit = max(DiskStoreOptions.minimumLimit, min(limit, part))
            }
        } catch {
            throw CacheError(error, path: path)
        }
    }

    private func closeAll() {
        for file in [root, entries, staging, lockFile].compactMap({ $0 }) {
            fileSystem.close(file)
        }
    }

    // MARK: FORMAT

    /// - Returns: the version, if there is one.
    private func checkFormat() throws(CacheError) -> Int? {
        let text: String?
        do throws(FileSystemError) {
            text = try readSmall("FORMAT")
        } catch {
            throw CacheError(error, path: path.appending("FORMAT"))
        }
        guard let text else { return nil }
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 3, words[0] == "tieredcache", words[1] == "format",
            let version = Int(words[2]), (1...Self.formatVersion).contains(version)
        else {
            throw CacheError(
                .formatTooNew,
                "the cache directory \(path) was written by a newer version; "
                    + "update this program or choose another directory"
            )
        }
        return version
    }

    /// An older version is replaced before any record is: records of both are read all the same,
    /// and a program of that version must not take ours for damaged ones.
    private func writeFormat(replacing: Bool) throws(FileSystemError) {
        guard let staging else { return }
        let file = try fileSystem.open("FORMAT", in: staging, mode: .openOrCreate)
        defer { fileSystem.close(file) }
        try fileSystem.truncate(file, to: 0)
        try fileSystem.write(
            Array("tieredcache format \(Self.formatVersion)\n".utf8),
            to: file,
            at: 0
        )
        // The only file that is synced: a torn one would refuse the directory for ever.
        try fileSystem.sync(file, dataOnly: false)
        try fileSystem.rename("FORMAT", in: staging, to: "FORMAT", in: root)
        if replacing { try fileSystem.sync(root, dataOnly: false) }
    }

    // MARK: LOCK

    private mutating func takeLock() throws(CacheError) {
        do throws(FileSystemError) {
            // Never removed and made anew: two processes could then lock two files of one name.
            let file = try fileSystem.openFile("LOCK", in: root, mode: .openOrCreate)
            lockFile = file
            guard try fileSystem.lock(file) else {
                access = .guest(try owner(of: file))
                return
            }
            claim = readClaim()
            try signLock(file)
            sweepSocket()
        } catch {
            switch error.errno {
            // What is stored can be served all the same; any other error says that nothing works.
            case .readOnlyFileSystem, .permissionDenied, .notPermitted, .noSpace,
                .diskQuotaExceeded:
                access = .readOnly(CacheError(error, path: path.appending("LOCK")))
            default:
                throw CacheError(error, path: path.appending("LOCK"))
            }
        }
    }

    /// Leaves the lock to a process that writes.
    private mutating func lookForOwner() {
        let error = CacheError(.notOwner, "the cache directory \(path) was opened for reading")
        access = .readOnly(error)
        do throws(FileSystemError) {
            let file = try fileSystem.openFile("LOCK", in: root, mode: .read)
            defer { fileSystem.close(file) }
            guard try fileSystem.isLocked(file) else { return }
            access = .guest(try owner(of: file))
        } catch {
            return  // It has no owner, or none that is known.
        }
    }

    private func owner(of lock: OpenFile) throws(FileSystemError) -> DirectoryOwner {
        DirectoryOwner(
            process: try readLock()?.owner,
            signedAt: WallTime(nanoseconds: try fileSystem.status(of: lock).modified)
        )
    }

    private func readLock() throws(FileSystemError) -> LockFile? {
        try readSmall("LOCK").map { LockFile($0) }
    }

    /// Removes what the owner before has left: without a service guests are to know that at once.
    private func sweepSocket() {
        do throws(FileSystemError) {
            guard try fileSystem.status(of: "OWNER", in: root).kind == .other else { return }
            try fileSystem.unlink("OWNER", in: root)
        } catch {
            return  // There is none; or it stays, and refuses connections.
        }
    }

    /// A LOCK that cannot be read has no claim: all is read before the first write then.
    private func readClaim() -> Int64? {
        do throws(FileSystemError) {
            return try readLock()?.claim
        } catch {
            return nil
        }
    }

    /// Writes the owner's process number into LOCK, for messages only: a full or read-only
    /// volume is ignored, because the next write will meet it.
    ///
    /// The claim stays unchanged: it never disappears between two owners.
    private func signLock(_ file: OpenFile) throws(FileSystemError) {
        do throws(FileSystemError) {
            if claim == nil { try fileSystem.truncate(file, to: 0) }
            try LockFile(claim: claim).write(to: file, fileSystem)
        } catch {
            switch error.errno {
            case .noSpace, .diskQuotaExceeded, .readOnlyFileSystem: return
            default: throw error
            }
        }
    }

    // MARK: Directories

    private mutating func makeDirectories() throws(FileSystemError) {
        for name in ["staging", "entries"] {
            do throws(FileSystemError) {
                try fileSystem.makeDirectory(name, in: root)
            } catch  where error.errno == .fileExists {
                continue
            }
        }
        staging = try fileSystem.open("staging", in: root, mode: .directory)
    }

    /// Removes the leftovers of a crash; those that cannot be removed are tried again at the next
    /// start.
    private func sweepStaging() {
        guard let staging else { return }
        do throws(FileSystemError) {
            for item in try fileSystem.list(staging) where item.kind == .file {
                guard Self.isOurs(item.name) else { continue }
                try fileSystem.unlink(item.name, in: staging)
            }
        } catch {
            // A leftover costs space, not correctness.
            return
        }
    }

    /// Whether a name and kind in the root belong to the cache.
    ///
    /// `jobs` belongs to the downloads, `PROXY`, `SERVING` and the socket `OWNER` to the servers,
    /// STATS and EVENTS to the history; the disk tier never touches them.
    static func isOurs(_ item: DirectoryItem) -> Bool {
        switch item.kind {
        case .directory: directories.contains(item.name)
        case .file: files.contains(item.name)
        case .other: ["OWNER", "AGENT"].contains(item.name)
        }
    }

    private static let directories: Set = ["entries", "staging", "jobs", "agent", quarantine]
    private static let files: Set<String> = Set(
        ["FORMAT", "LOCK", IndexSnapshot.name, "PROXY", "SERVING"] + HistoryFile.names
    )

    /// The directory of quarantined files.
    static let quarantine = "quarantine"

    /// Whether a name in `staging` is one that the cache gives.
    static func isOurs(_ staged: String) -> Bool {
        staged == "FORMAT" || staged == IndexSnapshot.name || staged == HistoryFile.statistics
            || EntryFileName(staged) != nil
    }

    private func allocated(_ name: String) -> Int64 {
        status(name)?.denseBytes(atMost: Int64(LockFile.length)) ?? 0
    }

    /// The status of a regular file; nil for anything else of its name.
    private func status(_ name: String) -> FileStatus? {
        do throws(FileSystemError) {
            let status = try fileSystem.status(of: name, in: root)
            return status.kind == .file ? status : nil
        } catch {
            // A guest may be there before the owner has written it.
            return nil
        }
    }

    /// The bytes allocated for STATS and the events; a file with two names counts once.
    private func allocatedByHistory() -> Int64 {
        let (events, older) = (status(HistoryFile.events), status(HistoryFile.olderEvents))
        let isOneFile = older?.identity == events?.identity
        let files = [status(HistoryFile.statistics), events, isOneFile ? nil : older]
        return files.compactMap { $0 }.reduce(0) { $0 + HistoryFile.chargedBytes($1) }
    }

    /// A power cut can leave half of a renaming: one file with both names, which would be told
    /// twice.
    private func sweepHistory() {
        guard let older = status(HistoryFile.olderEvents),
            older.identity == status(HistoryFile.events)?.identity
        else { return }
        do throws(FileSystemError) {
            try fileSystem.unlink(HistoryFile.olderEvents, in: root)
        } catch {
            return  // Then events are told twice.
        }
    }

    /// The bytes allocated for the cache's files in a directory; 0 if there is no such directory.
    private func allocated(in name: String, where isOurs: (DirectoryItem) -> Bool) -> Int64 {
        do throws(FileSystemError) {
            return try fileSystem.list(name, in: root).filter(isOurs)
                .reduce(0) { $0 + allocated("\(name)/\($1.name)") }
        } catch {
            return 0
        }
    }

    /// A crash may leave a file under its own and its quarantined name: then it still belongs to
    /// the entry.
    private func sweepQuarantine() {
        guard let entries else { return }
        do throws(FileSystemError) {
            let directory = try fileSystem.open(Self.quarantine, in: root, mode: .directory)
            defer { fileSystem.close(directory) }
            for item in try fileSystem.list(directory) {
                guard let path = EntryFileName(item.name)?.path else { continue }
                let twin = try ifPresent { () throws(FileSystemError) in
                    try fileSystem.status(of: path, in: entries)
                }
                guard let twin,
                    try fileSystem.status(of: item.name, in: directory).identity == twin.identity
                else { continue }
                try fileSystem.unlink(item.name, in: directory)
            }
        } catch {
            // There is none, or it is counted twice until the quarantine is emptied.
        }
    }

    private func readSmall(_ name: String) throws(FileSystemError) -> String? {
        let opened = try ifPresent { () throws(FileSystemError) in
            try fileSystem.openFile(name, in: root, mode: .read)
        }
        guard let opened else { return nil }
        defer { fileSystem.close(opened) }
        // `LockFile.length`; FORMAT is shorter.
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try bytes.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try fileSystem.read(opened, into: buffer, at: 0)
        }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}

extension [UInt8] {
    /// `withUnsafeMutableBytes` with typed throws.
    mutating func withUnsafeMutableBytesThrowing<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeMutableBufferPointer { (buffer) throws(Failure) in
            try body(UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
