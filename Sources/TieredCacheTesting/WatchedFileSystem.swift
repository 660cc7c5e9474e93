package import SystemPackage
@_spi(Benchmarks) package import TieredCache

/// Wraps a file system: reports each call before it is made, and can simulate a cold cache.
///
/// The watcher runs on the calling thread and may block it, as a slow disk does. With a cold cache,
/// all calls that must not block report that they would.
package final class WatchedFileSystem: FileSystem {
    private let base: any FileSystem
    private let isCold: @Sendable () -> Bool
    private let isWarm: Bool
    private let watchClosing: (@Sendable (OpenFile) -> Void)?
    private let watchReading: (@Sendable (Int64) -> Void)?
    private let watchWriting: (@Sendable (Int) -> Void)?
    private let watch: @Sendable (FileSystemError.Call, String) -> Void

    /// Creates a file system.
    ///
    /// - Parameters:
    ///   - base: the wrapped file system.
    ///   - isCold: whether calls that must not block do not succeed; asked at each of them.
    ///   - isWarm: whether every range can be sent from its file without blocking, whatever the
    ///     kernel reports.
    ///   - watchClosing: gets each file before it is closed; `nil` for none.
    ///   - watchReading: gets the offset of each read that may block, before it is made; `nil` for
    ///     none.
    ///   - watchWriting: gets the number of bytes of each write before it is made; `nil` for none.
    ///   - watch: gets each call that may block and its name argument, empty for calls on open
    ///     files. Closing and calls that never block are not reported.
    package init(
        _ base: any FileSystem,
        isCold: @autoclosure @escaping @Sendable () -> Bool = false,
        isWarm: Bool = false,
        watchClosing: (@Sendable (OpenFile) -> Void)? = nil,
        watchReading: (@Sendable (Int64) -> Void)? = nil,
        watchWriting: (@Sendable (Int) -> Void)? = nil,
        watch: @escaping @Sendable (FileSystemError.Call, String) -> Void
    ) {
        self.base = base
        self.isCold = isCold
        self.isWarm = isWarm
        self.watchClosing = watchClosing
        self.watchReading = watchReading
        self.watchWriting = watchWriting
        self.watch = watch
    }

    /// Opens a directory from the root.
    package func openRoot(_ path: FilePath, creating: Bool) throws(FileSystemError) -> OpenFile {
        watch(.open, path.string)
        return try base.openRoot(path, creating: creating)
    }

    /// Opens a file or directory.
    package func open(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        watch(mode == .createNew || mode == .openOrCreate ? .create : .open, name)
        return try base.open(name, in: directory, mode: mode)
    }

    /// Opens a file without blocking, unless the cache is cold.
    package func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        isCold() ? .wouldBlock : try base.openWithoutBlocking(name, in: directory)
    }

    /// Closes a file.
    package func close(_ file: OpenFile) {
        watchClosing?(file)
        base.close(file)
    }

    /// Reads bytes of a file.
    package func read(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> Int {
        watch(.read, "")
        watchReading?(offset)
        return try base.read(file, into: buffer, at: offset)
    }

    /// Reads bytes without blocking, unless the cache is cold.
    package func readWithoutBlocking(
        _ file: OpenFile,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(FileSystemError) -> NonBlocking<Int> {
        isCold() ? .wouldBlock : try base.readWithoutBlocking(file, into: buffer, at: offset)
    }

    /// The descriptor for a range that can be sent without blocking; nil if the cache is cold.
    package func sendable(_ file: OpenFile, range: Range<Int64>) -> Int32? {
        isCold() ? nil : isWarm ? file.number : base.sendable(file, range: range)
    }

    /// Writes bytes.
    package func write(
        _ first: UnsafeRawBufferPointer,
        followedBy second: UnsafeRawBufferPointer,
        to file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) {
        watch(.write, "")
        watchWriting?(first.count + second.count)
        try base.write(first, followedBy: second, to: file, at: offset)
    }

    /// Sets the length of a file.
    package func truncate(_ file: OpenFile, to length: Int64) throws(FileSystemError) {
        watch(.resize, "")
        try base.truncate(file, to: length)
    }

    /// Punches a hole.
    package func punch(_ file: OpenFile, range: Range<Int64>) throws(FileSystemError) {
        watch(.resize, "")
        try base.punch(file, range: range)
    }

    /// The status of an open file; it never blocks, so it is not reported.
    package func status(of file: OpenFile) throws(FileSystemError) -> FileStatus {
        try base.status(of: file)
    }

    /// The status of a file or directory by its name.
    package func status(
        of name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> FileStatus {
        watch(.inspect, name)
        return try base.status(of: name, in: directory)
    }

    /// Renames a file.
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

    /// Syncs a file or directory.
    package func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError) {
        watch(.sync, "")
        try base.sync(file, dataOnly: dataOnly)
    }

    /// The free and total space of the volume.
    package func volume(of file: OpenFile) throws(FileSystemError) -> VolumeStatus {
        watch(.inspect, "")
        return try base.volume(of: file)
    }

    /// Acquires an exclusive lock.
    package func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        watch(.lock, "")
        return try base.lock(file)
    }

    /// Acquires a shared lock.
    package func share(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try base.share(file)
    }

    /// Whether another open file has a lock.
    package func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try base.isLocked(file)
    }

    /// Releases the lock.
    package func unlock(_ file: OpenFile) { base.unlock(file) }
}
