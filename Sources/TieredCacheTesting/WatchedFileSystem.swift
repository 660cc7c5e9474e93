package import SystemPackage
@_spi(Benchmarks) package import TieredCache

/// A file system in front of another: tells of each call before it is made, and can be cold.
///
/// The watcher runs on the calling thread and may block it, as a slow disk does. A cold one has
/// nothing in any cache: what must not block says that it would.
package final class WatchedFileSystem: FileSystem {
    private let base: any FileSystem
    private let isCold: Bool
    private let isWarm: Bool
    private let watch: @Sendable (FileSystemError.Call, String) -> Void

    /// Creates a file system.
    ///
    /// - Parameters:
    ///   - base: does the work.
    ///   - isCold: whether the calls that must not block never succeed.
    ///   - isWarm: whether everything can be sent from its file, whatever the kernel says.
    ///   - watch: gets each call that may block and the name that it was given, empty where it was
    ///     given an open file; closing and the calls that never block are not told.
    package init(
        _ base: any FileSystem,
        isCold: Bool = false,
        isWarm: Bool = false,
        watch: @escaping @Sendable (FileSystemError.Call, String) -> Void
    ) {
        self.base = base
        self.isCold = isCold
        self.isWarm = isWarm
        self.watch = watch
    }

    /// Opens a directory of the other one.
    package func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile {
        watch(.open, path.string)
        return try base.openRoot(path, creating: creating)
    }

    /// Opens a file of the other one.
    package func open(
        _ name: String,
        in directory: OpenFile,
        _ mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        watch(mode == .createNew || mode == .openOrCreate ? .create : .open, name)
        return try base.open(name, in: directory, mode)
    }

    /// Opens a file of the other one, unless this one is cold.
    package func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        isCold ? .wouldBlock : try base.openWithoutBlocking(name, in: directory)
    }

    /// Closes a file.
    package func close(_ file: OpenFile) { base.close(file) }

    /// Reads.
    package func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        watch(.read, "")
        return try base.read(file, into: buffer, at: offset)
    }

    /// Reads, unless this one is cold.
    package func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int> {
        isCold ? .wouldBlock : try base.readWithoutBlocking(file, into: buffer, at: offset)
    }

    /// Asks, unless this one is cold.
    package func sendable(_ file: OpenFile, _ range: Range<Int64>) -> Int32? {
        isWarm ? file.number : isCold ? nil : base.sendable(file, range)
    }

    /// Writes.
    package func write(
        _ first: UnsafeRawBufferPointer,
        _ second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        watch(.write, "")
        try base.write(first, second, to: file, at: offset)
    }

    /// Sets the length.
    package func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        watch(.resize, "")
        try base.truncate(file, to: length)
    }

    /// Makes a hole.
    package func punch(_ file: OpenFile, _ range: Range<Int64>) throws(FileSystemError) {
        watch(.resize, "")
        try base.punch(file, range)
    }

    /// The status of an open file: in memory, so it is not told.
    package func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        try base.status(of: file)
    }

    /// The status of what has a name.
    package func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        watch(.inspect, name)
        return try base.status(of: name, in: directory)
    }

    /// Renames.
    package func rename(
        _ name: String,
        in directory: OpenFile,
        to newName: String,
        in newDirectory: OpenFile
    ) throws(FileSystemError) {
        watch(.rename, name)
        try base.rename(name, in: directory, to: newName, in: newDirectory)
    }

    /// Removes a name.
    package func unlink(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        watch(.remove, name)
        try base.unlink(name, in: directory)
    }

    /// Makes a directory.
    package func makeDirectory(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        watch(.create, name)
        try base.makeDirectory(name, in: directory)
    }

    /// Lists a directory.
    package func list(_ directory: OpenFile) throws(FileSystemError) -> [DirectoryItem] {
        watch(.list, "")
        return try base.list(directory)
    }

    /// Waits for the medium.
    package func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError) {
        watch(.sync, "")
        try base.sync(file, dataOnly: dataOnly)
    }

    /// The room on the volume.
    package func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus {
        watch(.inspect, "")
        return try base.volume(of: file)
    }

    /// Takes the lock.
    package func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        watch(.lock, "")
        return try base.lock(file)
    }

    /// Takes a share of the lock.
    package func share(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try base.share(file)
    }

    /// Whether others have a share of the lock.
    package func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try base.isLocked(file)
    }

    /// Gives the lock up.
    package func unlock(_ file: OpenFile) { base.unlock(file) }
}
