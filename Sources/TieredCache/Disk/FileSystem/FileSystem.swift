package import SystemPackage

/// The system calls of the disk tier, as a protocol: tests record them, fail them and crash between
/// any two.
///
/// Names are relative to an open directory; implementations follow no symbolic link below it. Calls
/// restart after an interrupt. Any thread may call.
package protocol FileSystem: Sendable {
    /// Opens a directory by its path, and creates it and its parents (0700) if asked: their names
    /// are on the medium then, as far as its file system can tell.
    ///
    /// Symbolic links are followed: the path is the user's own.
    func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile

    /// Opens a file; see ``OpenMode``.
    func open(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile

    /// Opens a file for reading if the names are in the kernel's cache.
    func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile>

    /// Closes a file. Errors are ignored: a close promises no durability.
    func close(_ file: OpenFile)

    /// Reads up to the buffer's size; fewer bytes only at the end of the file.
    func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int

    /// Reads what the page cache holds; the count may be smaller than the buffer anywhere.
    func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int>

    /// A descriptor from which the kernel can send a range to a socket without waiting for the
    /// disk.
    ///
    /// - Returns: nil if the page cache does not hold all of it, or there is no such descriptor;
    ///   the bytes can be read then.
    func sendable(_ file: OpenFile, range: Range<Int64>) -> Int32?

    /// Writes two buffers, one after the other, completely or with an error; a part may then be
    /// written.
    func write(
        _ first: UnsafeRawBufferPointer,
        followedBy second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError)

    /// Sets the length; an extension is a hole.
    func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError)

    /// Frees the storage of a range, which then reads as zeros.
    func punch(_ file: OpenFile, range: Range<Int64>) throws(FileSystemError)

    /// The status of an open file.
    func status(of file: OpenFile) throws(FileSystemError) -> FileStatus

    /// The status of the file that has a name; symbolic links are not followed.
    func status(of name: String, in directory: OpenFile) throws(FileSystemError) -> FileStatus

    /// Renames a file, and atomically replaces the file that had the new name.
    func rename(
        _ name: String,
        in directory: OpenFile,
        to newName: String,
        in newDirectory: OpenFile
    ) throws(FileSystemError)

    /// Removes a file's name; the file lives on while it is open.
    func unlink(_ name: String, in directory: OpenFile) throws(FileSystemError)

    /// Creates a directory with mode 0700.
    func makeDirectory(_ name: String, in directory: OpenFile) throws(FileSystemError)

    /// Asks that directories made in this one lie apart from each other: a hint, and no promise.
    func spread(_ directory: OpenFile)

    /// Everything in a directory except `.` and `..`, in no order.
    func list(_ directory: OpenFile) throws(FileSystemError) -> [DirectoryItem]

    /// Waits until the file, or a directory's names, are on the medium.
    func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError)

    /// The room on the volume that holds the file.
    func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus

    /// Takes the exclusive lock that belongs to this open file, without waiting.
    ///
    /// - Returns: whether it was taken; false means that another open file holds it.
    func lock(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// Takes a share of that lock, without waiting; any number of open files may have one.
    ///
    /// - Returns: whether it was taken; false means that another open file holds the whole.
    func share(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// Whether another open file has the lock, or a share of it.
    func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool

    /// Gives the lock up that this open file holds.
    ///
    /// Closing does it as well, but not while a process that was forked meanwhile, and has not
    /// begun its own program yet, has the file open too.
    func unlock(_ file: OpenFile)
}

extension FileSystem {
    /// Nothing: most file systems know no such hint.
    package func spread(_ directory: OpenFile) {}

    /// Nil: only files of the kernel can be sent from a descriptor.
    package func sendable(_ file: OpenFile, range: Range<Int64>) -> Int32? { nil }

    /// Opens a regular file: a device in its place would accept bytes and return others.
    ///
    /// - Throws: `ENXIO` for anything else; see ``FileSystemError/isAbsence``.
    func openFile(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        // Looked at after opening, by descriptor: between a look at a name and its opening it may
        // change.
        let file = try open(name, in: directory, mode: mode)
        _ = try requireFile(file)
        return file
    }

    /// The status of an open file; closes it if it is no regular one.
    func requireFile(_ file: OpenFile) throws(FileSystemError) -> FileStatus {
        do throws(FileSystemError) {
            let status = try status(of: file)
            guard status.kind == .file else {
                throw FileSystemError(.open, errno: .noSuchAddressOrDevice)
            }
            return status
        } catch {
            close(file)
            throw error
        }
    }

    /// Opens a file for reading; nil if no regular file has the name.
    func openIfPresent(
        _ name: String,
        in directory: OpenFile,
        blocking: Bool
    ) throws(FileSystemError) -> NonBlocking<OpenFile?> {
        do throws(FileSystemError) {
            if blocking { return .ready(try open(name, in: directory, mode: .read)) }
            switch try openWithoutBlocking(name, in: directory) {
            case .ready(let file): return .ready(file)
            case .wouldBlock: return .wouldBlock
            }
        } catch  where error.isAbsence {
            return .ready(nil)
        }
    }

    /// Removes a name; succeeds if there is none.
    func unlinkIfPresent(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        _ = try ifPresent { () throws(FileSystemError) in try unlink(name, in: directory) }
    }

    /// Everything in a directory that has a name in another one.
    func list(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> [DirectoryItem] {
        let opened = try open(name, in: directory, mode: .directory)
        defer { close(opened) }
        return try list(opened)
    }

    func write(
        _ bytes: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        try write(
            bytes,
            followedBy: UnsafeRawBufferPointer(start: nil, count: 0),
            to: file,
            at: offset
        )
    }

    func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64) throws(FileSystemError) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(FileSystemError) in
            try write(UnsafeRawBufferPointer(bytes), to: file, at: offset)
        }
    }
}
