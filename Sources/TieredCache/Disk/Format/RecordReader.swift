import SystemPackage

/// Opens and reads record files, blocking or not; closes what nobody took.
struct RecordReader {
    struct Found {
        var name: EntryName
        var record: Record
        /// As many blocks as the table has room for, held or not.
        var blocks: Int
        var checksums: [UInt64]
        /// The record file's status, as far as somebody had to ask.
        var status: FileStatus?
    }

    let fileSystem: any FileSystem
    let entries: OpenFile
    let blocking: Bool
    /// Whether a file was there that is no whole record.
    private(set) var isDamaged = false
    private var file: OpenFile?
    private var status: FileStatus?

    /// What most records and their tables fit into, so that one read is enough.
    private static let firstRead = 4096

    init(fileSystem: any FileSystem, entries: OpenFile, blocking: Bool) {
        self.fileSystem = fileSystem
        self.entries = entries
        self.blocking = blocking
    }

    /// Hands the record's file over.
    mutating func takeFile() -> OpenFile? {
        defer { file = nil }
        return file
    }

    mutating func close() {
        if let file = takeFile() {
            fileSystem.close(file)
        }
    }

    /// Reads the record of a name.
    ///
    /// `nil` if there is none, or none of `key`; a `nil` key takes any.
    mutating func open(
        _ name: EntryName,
        expecting key: CacheKey?
    ) throws(FileSystemError) -> NonBlocking<Found?> {
        guard case .ready(let opened) = try openFile(name.record) else { return .wouldBlock }
        guard let opened else { return .ready(nil) }
        status = try fileSystem.requireFile(opened)
        file = opened
        let parsed = try parse(name, key)
        // The owner may have been changing the head in place.
        guard case .damaged = parsed else { return found(parsed) }
        status = nil
        return found(try parse(name, key))
    }

    /// Opens a body file; `nil` if there is none.
    func openBody(
        _ name: EntryName,
        _ generation: UInt64,
        writable: Bool
    ) throws(FileSystemError) -> NonBlocking<OpenFile?> {
        if writable, !blocking { return .wouldBlock }
        do throws(FileSystemError) {
            let path = name.body(generation)
            if writable {
                return .ready(try fileSystem.openFile(path, in: entries, .readWrite))
            }
            guard case .ready(let file) = try openFile(path) else { return .wouldBlock }
            if let file { _ = try fileSystem.requireFile(file) }
            return .ready(file)
        } catch  where error.isAbsence {
            return .ready(nil)
        }
    }

    private enum Parsed {
        case found(Found)
        case needs(Int)
        case nothing
        case damaged
        case wouldBlock
    }

    private mutating func found(_ parsed: Parsed) -> NonBlocking<Found?> {
        switch parsed {
        case .found(let found): return .ready(found)
        case .wouldBlock: return .wouldBlock
        case .nothing: return .ready(nil)
        case .needs, .damaged:
            isDamaged = true
            return .ready(nil)
        }
    }

    private func openFile(_ path: String) throws(FileSystemError) -> NonBlocking<OpenFile?> {
        do throws(FileSystemError) {
            guard blocking else {
                switch try fileSystem.openWithoutBlocking(path, in: entries) {
                case .ready(let file): return .ready(file)
                case .wouldBlock: return .wouldBlock
                }
            }
            return .ready(try fileSystem.open(path, in: entries, .read))
        } catch  where error.isAbsence {
            return .ready(nil)
        }
    }

    private mutating func parse(
        _ name: EntryName,
        _ key: CacheKey?
    ) throws(FileSystemError) -> Parsed {
        let result = try withTemporary(Self.firstRead) { (buffer) throws(FileSystemError) in
            try parse(name, key, buffer)
        }
        guard case .needs(let count) = result else { return result }
        return try withTemporary(count) { (buffer) throws(FileSystemError) in
            try parse(name, key, buffer)
        }
    }

    private mutating func parse(
        _ name: EntryName,
        _ key: CacheKey?,
        _ buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Parsed {
        guard let file, let count = try fill(buffer, from: file) else { return .wouldBlock }
        let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
        switch Record.decode(bytes, expecting: key) {
        case .damaged:
            return .damaged
        case .otherKey:
            return .nothing
        case .needsBytes(let needed):
            // More is needed than one read got: the file is cut off, or the head is long.
            return count < buffer.count ? .damaged : .needs(needed + Self.firstRead)
        case .record(let record):
            return try table(of: record, name, bytes, isWhole: count < buffer.count)
        }
    }

    /// The checksums behind the head, as far as the file and the complete length go.
    private mutating func table(
        of record: Record,
        _ name: EntryName,
        _ bytes: UnsafeRawBufferPointer,
        isWhole: Bool
    ) throws(FileSystemError) -> Parsed {
        guard let file else { return .wouldBlock }
        let size = isWhole ? Int64(bytes.count) : try status(of: file).size
        let room = max(0, (size - record.tableOffset) / 8)
        let blocks = Int(clamping: record.completeLength.map { BlockTable.blockCount($0) } ?? room)
        if record.flags.contains(.inline), blocks > 1 { return .damaged }
        let end = Int64(min(room, Int64(blocks))) * 8 + record.tableOffset
        if end > Int64(bytes.count) {
            // Whole records are bounded by the limit; a forged size is not worth its memory.
            guard end <= 1 << 30 else { return .damaged }
            return .needs(Int(end) + 1)
        }
        let start = Int(min(record.tableOffset, Int64(bytes.count)))
        let checksums = Record.decodeTable(
            UnsafeRawBufferPointer(rebasing: bytes[start...]),
            blocks: blocks
        )
        return .found(
            Found(
                name: name,
                record: record,
                blocks: blocks,
                checksums: checksums,
                status: status
            )
        )
    }

    private mutating func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        if let status { return status }
        let status = try fileSystem.status(of: file)
        self.status = status
        return status
    }

    /// Fills the buffer from the start of the file; `nil` if that would block.
    private mutating func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        from file: OpenFile
    ) throws(FileSystemError) -> Int? {
        if blocking { return try fileSystem.read(file, into: buffer, at: 0) }
        guard case .ready(let count) = try fileSystem.readWithoutBlocking(file, into: buffer, at: 0)
        else { return nil }
        if count == buffer.count { return count }
        // Short: either the end of the file, or of what is cached.
        let size = try status(of: file).size
        return Int64(count) == size ? count : nil
    }

    private func withTemporary<Result>(
        _ count: Int,
        _ body: (UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Result
    ) throws(FileSystemError) -> Result {
        let result = withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
            Swift.Result { () throws(FileSystemError) in try body(buffer) }
        }
        return try result.get()
    }
}
