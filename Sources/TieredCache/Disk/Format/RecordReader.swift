import SystemPackage

/// Opens and reads record files, blocking or not; closes the files that no caller took.
struct RecordReader {
    struct Found {
        var name: EntryName
        var record: Record
        /// As many blocks as the table has room for, stored or not.
        var blocks: Int
        var checksums: [UInt64]
        /// The record file's status before it was read.
        var status: FileStatus

        /// Which blocks are stored, none of them verified.
        var table: BlockTable {
            BlockTable(completeLength: record.completeLength, checksums: checksums)
        }

        var isInline: Bool { record.flags.contains(.inline) }

        /// Where the body starts in its file.
        var bodyOffset: Int64 { isInline ? record.tableOffset + 8 * Int64(blocks) : 0 }

        /// The file of the body.
        var bodyPath: String { isInline ? name.record : name.body(record.generation) }
    }

    let fileSystem: any FileSystem
    let entries: OpenFile
    let blocking: Bool
    /// Whether there was a file that is no valid record.
    private(set) var isDamaged = false
    private var file: OpenFile?

    /// The bytes of the first read: most records and their tables fit.
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
        let path = name.record
        let found = try fileSystem.openIfPresent(path, in: entries, blocking: blocking)
        guard case .ready(let opened) = found else { return .wouldBlock }
        guard let opened else { return .ready(nil) }
        var status = try fileSystem.requireFile(opened)
        file = opened
        var parsed = try parse(name, key: key, file: opened, status: status)
        if case .damaged = parsed {
            // The owner may have been changing the head in place.
            status = try fileSystem.status(of: opened)
            parsed = try parse(name, key: key, file: opened, status: status)
        }
        switch parsed {
        case .found(let found): return .ready(found)
        case .wouldBlock: return .wouldBlock
        case .nothing: return .ready(nil)
        case .needs, .damaged:
            isDamaged = true
            return .ready(nil)
        }
    }

    /// Opens a body file; `nil` if there is none.
    func openBody(
        of name: EntryName,
        generation: UInt64,
        writable: Bool
    ) throws(FileSystemError) -> NonBlocking<(file: OpenFile, status: FileStatus)?> {
        if writable, !blocking { return .wouldBlock }
        let path = name.body(generation)
        do throws(FileSystemError) {
            let found =
                writable
                ? .ready(try fileSystem.open(path, in: entries, mode: .readWrite))
                : try fileSystem.openIfPresent(path, in: entries, blocking: blocking)
            guard case .ready(let file) = found else { return .wouldBlock }
            guard let file else { return .ready(nil) }
            return .ready((file, try fileSystem.requireFile(file)))
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

    private func parse(
        _ name: EntryName,
        key: CacheKey?,
        file: OpenFile,
        status: FileStatus
    ) throws(FileSystemError) -> Parsed {
        let result = try withTemporary(Self.firstRead) { (buffer) throws(FileSystemError) in
            try parse(name, key: key, file: file, status: status, buffer: buffer)
        }
        guard case .needs(let count) = result else { return result }
        return try withTemporary(count) { (buffer) throws(FileSystemError) in
            try parse(name, key: key, file: file, status: status, buffer: buffer)
        }
    }

    private func parse(
        _ name: EntryName,
        key: CacheKey?,
        file: OpenFile,
        status: FileStatus,
        buffer: UnsafeMutableRawBufferPointer
    ) throws(FileSystemError) -> Parsed {
        guard let count = try fill(buffer, from: file, size: status.size) else {
            return .wouldBlock
        }
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
            return table(
                of: record,
                name: name,
                bytes: bytes,
                status: status,
                isWhole: count < buffer.count
            )
        }
    }

    /// The checksums behind the head, as far as the file and the complete length go.
    private func table(
        of record: Record,
        name: EntryName,
        bytes: UnsafeRawBufferPointer,
        status: FileStatus,
        isWhole: Bool
    ) -> Parsed {
        let size = isWhole ? Int64(bytes.count) : status.size
        let room = max(0, (size - record.tableOffset) / 8)
        let blocks = Int(clamping: record.completeLength.map { BlockTable.blockCount($0) } ?? room)
        if record.flags.contains(.inline), blocks > 1 { return .damaged }
        let end = Int64(min(room, Int64(blocks))) * 8 + record.tableOffset
        if end > Int64(bytes.count) {
            // Whole records are bounded by the limit; a forged size is not worth its memory.
            guard end <= 1 << 30 else { return .damaged }
            // One more than is needed: a read that leaves room has met the end of the file.
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

    /// Fills the buffer from the start of the file; `nil` if that would block.
    private func fill(
        _ buffer: UnsafeMutableRawBufferPointer,
        from file: OpenFile,
        size: Int64
    ) throws(FileSystemError) -> Int? {
        if blocking { return try fileSystem.read(file, into: buffer, at: 0) }
        guard case .ready(let count) = try fileSystem.readWithoutBlocking(file, into: buffer, at: 0)
        else { return nil }
        // Short: either the end of the file, or of what is cached.
        return count == buffer.count || Int64(count) == size ? count : nil
    }

    private func withTemporary<Result>(
        _ count: Int,
        body: (UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Result
    ) throws(FileSystemError) -> Result {
        let result = withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
            // `withUnsafeTemporaryAllocation` has no typed throws in Swift 6.3.
            Swift.Result { () throws(FileSystemError) in try body(buffer) }
        }
        return try result.get()
    }
}
