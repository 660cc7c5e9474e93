/// Reads a snapshot section by section, in the order of directories.
///
/// Whatever is wrong with it, from where it is wrong on there is no snapshot.
struct SnapshotReader {
    let fileSystem: any FileSystem
    private let file: OpenFile
    private let size: Int64
    /// Directories changed after this may have been changed again unseen.
    private let trustedUntil: Int64
    private var offset: Int64 = 0
    private var pending: IndexSnapshot.Header?
    private var isAtEnd = false

    init(_ file: OpenFile, fileSystem: any FileSystem) throws(FileSystemError) {
        self.file = file
        self.fileSystem = fileSystem
        let status = try fileSystem.status(of: file)
        size = status.size
        trustedUntil = status.modified - IndexSnapshot.clockGrain
    }

    /// The entries of a directory; ask in ascending order.
    ///
    /// - Parameters:
    ///   - shard: the directory's number.
    ///   - stamp: what it is now; `nil` if that is not known.
    /// - Returns: `nil` if the snapshot does not know them, or not as they are now.
    /// - Throws: what a read has failed with; the snapshot ends there.
    mutating func slots(
        of shard: Int,
        at stamp: IndexSnapshot.Stamp?
    ) throws(FileSystemError) -> [DiskIndex.Slot]? {
        while let header = try next(), header.shard < shard {
            skip(header)
        }
        guard let header = pending, header.shard == shard else { return nil }
        guard let stamp, header.stamp == stamp, stamp.modified < trustedUntil else {
            skip(header)
            return nil
        }
        let bytes = try read(IndexSnapshot.headerLength + header.length)
        skip(header)
        guard let slots = bytes.withUnsafeBytes({ IndexSnapshot.slots(header, in: $0) }) else {
            // Its length may be wrong as well, so that the next section cannot be found.
            end()
            return nil
        }
        return slots
    }

    private mutating func next() throws(FileSystemError) -> IndexSnapshot.Header? {
        if pending != nil || isAtEnd { return pending }
        let bytes = try read(IndexSnapshot.headerLength)
        let header = bytes.withUnsafeBytes(IndexSnapshot.header)
        guard let header,
            Int64(header.length) <= size - offset - Int64(IndexSnapshot.headerLength)
        else {
            end()
            return nil
        }
        pending = header
        return header
    }

    private mutating func skip(_ header: IndexSnapshot.Header) {
        offset += Int64(IndexSnapshot.headerLength + header.length)
        pending = nil
    }

    private mutating func end() {
        isAtEnd = true
        pending = nil
    }

    private mutating func read(_ count: Int) throws(FileSystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        do throws(FileSystemError) {
            let done = try bytes.withUnsafeMutableBytesThrowing {
                (buffer) throws(FileSystemError) in
                try fileSystem.read(file, into: buffer, at: offset)
            }
            // Nothing has no header, so that the snapshot ends here.
            return done == count ? bytes : []
        } catch {
            end()
            throw error
        }
    }
}
