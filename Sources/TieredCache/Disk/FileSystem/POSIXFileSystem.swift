import CLinuxCalls
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The machine's file system.
///
/// One line per system call.
package struct POSIXFileSystem: FileSystem {
    /// Whether to do as on a kernel without `openat2(2)`.
    private let isOldKernel: Bool
    private let mayBlockAnyThread: Bool

    /// Creates the file system.
    ///
    /// - Parameters:
    ///   - isOldKernel: whether to pretend to run on Linux before 5.6, or in a sandbox that forbids
    ///     `openat2(2)`.
    ///   - mayBlockAnyThread: whether a test or a program calls it on threads of its own; otherwise
    ///     a debug build traps where a thread waits for the disk that must not, see
    ///     ``LockChecker/assertMayBlock()``.
    package init(isOldKernel: Bool = false, mayBlockAnyThread: Bool = false) {
        self.isOldKernel = isOldKernel
        self.mayBlockAnyThread = mayBlockAnyThread
    }

    /// `open(2)` with `O_DIRECTORY`; with `creating`, `mkdir(2)` of each missing parent first.
    ///
    /// A directory that others may write to is no place for a cache: they could put anything into
    /// it. `fchmod(2)` takes that from one that is ours.
    package func openRoot(
        _ path: FilePath,
        creating: Bool
    ) throws(FileSystemError) -> OpenFile {
        let first = openDirectory(path)
        guard first == -ENOENT, creating else { return try claimed(opened(first, call: .open)) }
        try makeDirectories(path)
        return try claimed(opened(openDirectory(path), call: .open))
    }

    // The bytes of the path, which need not be UTF-8: its text would name another directory.
    private func openDirectory(_ path: FilePath) -> Int32 {
        path.withPlatformString { tc_openat_plain(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY, 0) }
    }

    private func makeDirectory(_ path: FilePath) -> Int32 {
        path.withPlatformString { tc_mkdirat(AT_FDCWD, $0) }
    }

    private func claimed(_ root: OpenFile) throws(FileSystemError) -> OpenFile {
        do throws(FileSystemError) {
            try check(tc_claim_root(root.number), call: .open)
        } catch {
            close(root)
            throw error
        }
        return root
    }

    /// `openat2(2)` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`.
    package func open(
        _ name: String,
        in directory: OpenFile,
        mode: OpenMode
    ) throws(FileSystemError) -> OpenFile {
        let flags = Self.flags(mode)
        let file = tc_open_beneath_on(
            directory.number,
            name,
            flags,
            0o600,
            false,
            isOldKernel
        )
        return try opened(file, call: flags & O_CREAT != 0 ? .create : .open)
    }

    /// `openat2(2)` with `RESOLVE_CACHED` as well.
    package func openWithoutBlocking(
        _ name: String,
        in directory: OpenFile
    ) throws(FileSystemError) -> NonBlocking<OpenFile> {
        let flags = Self.flags(.read)
        let file = tc_open_beneath_on(directory.number, name, flags, 0, true, isOldKernel)
        // EAGAIN where a name is not in the kernel's cache of names (openat2(2), Linux 5.12).
        guard file != -EAGAIN else { return .wouldBlock }
        try checkLook(file, call: .open)
        return .ready(OpenFile(number: file))
    }

    /// `close(2)`.
    package func close(_ file: OpenFile) {
        assertMayLook()
        // Linux frees the descriptor even where close reports EINTR or EIO: never retry.
        #if canImport(Glibc)
        _ = Glibc.close(file.number)
        #else
        _ = Darwin.close(file.number)
        #endif
    }

    /// `mkdirat(2)`.
    package func makeDirectory(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try check(tc_mkdirat(directory.number, name), call: .create)
    }

    /// `ioctl(2)` with `FS_IOC_SETFLAGS`, where the file system has `FS_TOPDIR_FL` (ext2 to ext4).
    package func spread(_ directory: OpenFile) {
        _ = tc_spread(directory.number)
    }

    /// `renameat(2)`.
    package func rename(
        _ name: String,
        in directory: OpenFile,
        to newName: String,
        in newDirectory: OpenFile
    ) throws(FileSystemError) {
        try check(tc_renameat(directory.number, name, newDirectory.number, newName), call: .rename)
    }

    /// `unlinkat(2)`.
    package func unlink(_ name: String, in directory: OpenFile) throws(FileSystemError) {
        try check(tc_unlinkat(directory.number, name, false), call: .remove)
    }

    /// `fsync(2)` or `fdatasync(2)`.
    package func sync(_ file: OpenFile, dataOnly: Bool) throws(FileSystemError) {
        try check(tc_sync(file.number, dataOnly), call: .sync)
    }

    /// `fcntl(2)` with `F_OFD_SETLK`.
    package func lock(_ file: OpenFile) throws(FileSystemError) -> Bool {
        // Of the open file, not of the process (fcntl(2)): a POSIX lock would be lost with any
        // descriptor of the file that is closed.
        let result = tc_lock(file.number)
        try check(result, call: .lock)
        return result == 1
    }

    /// `fcntl(2)` with `F_OFD_SETLK` and `F_RDLCK`.
    package func share(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try isOne(tc_share(file.number))
    }

    /// `fcntl(2)` with `F_OFD_GETLK`.
    package func isLocked(_ file: OpenFile) throws(FileSystemError) -> Bool {
        try isOne(tc_is_locked(file.number))
    }

    /// `fcntl(2)` with `F_OFD_SETLK` and `F_UNLCK`.
    package func unlock(_ file: OpenFile) {
        // Cannot fail for an open file; closing follows anyway.
        tc_unlock(file.number)
    }

    private func isOne(_ result: Int32) throws(FileSystemError) -> Bool {
        try checkLook(result, call: .lock)
        return result == 1
    }

    private static func flags(_ mode: OpenMode) -> Int32 {
        switch mode {
        // Otherwise opening a FIFO in the place of a file waits for its other end (fifo(7)).
        case .read: O_RDONLY | O_NONBLOCK
        case .readWrite: O_RDWR | O_NONBLOCK
        case .createNew: O_RDWR | O_CREAT | O_EXCL
        case .openOrCreate: O_RDWR | O_CREAT | O_NONBLOCK
        case .directory: O_RDONLY | O_DIRECTORY
        }
    }

    private func makeDirectories(_ path: FilePath) throws(FileSystemError) {
        // Up to one that is there or can be made, then down again: a path may have 2,000 names.
        var (directory, missing) = (path, [FilePath]())
        var result = makeDirectory(directory)
        while result == -ENOENT {
            let parent = directory.removingLastComponent()
            guard parent != directory, !parent.isEmpty else { break }
            missing.append(directory)
            directory = parent
            result = makeDirectory(directory)
        }
        while true {
            if result != -EEXIST {
                try check(result, call: .create)
                syncName(of: directory)
            }
            // Once each: where nothing can be made at all, as in /proc, it is "no such file" for
            // ever.
            guard let next = missing.popLast() else { return }
            directory = next
            result = makeDirectory(directory)
        }
    }

    /// Brings the name of a new directory to the medium: what is pinned below it must not go with
    /// it.
    private func syncName(of path: FilePath) {
        let parent = path.removingLastComponent()
        let file = openDirectory(parent.isEmpty ? "." : parent)
        // One that must not be read, or that its file system cannot sync, is as it always was.
        guard file >= 0 else { return }
        _ = tc_sync(file, false)
        close(OpenFile(number: file))
    }

    private func opened(
        _ result: Int32,
        call: FileSystemError.Call
    ) throws(FileSystemError) -> OpenFile {
        try check(result, call: call)
        return OpenFile(number: result)
    }
}

extension POSIXFileSystem {
    /// Throws what a system call has failed with that may wait for the disk.
    @inline(__always)
    func check(_ result: Int32, call: FileSystemError.Call) throws(FileSystemError) {
        assertNoTierLock()
        if !mayBlockAnyThread { LockChecker.assertMayBlock() }
        try throwError(result, call: call)
    }

    /// The same for one that looks at an open file, and waits now and then.
    @inline(__always)
    func checkLook(_ result: Int32, call: FileSystemError.Call) throws(FileSystemError) {
        assertMayLook()
        try throwError(result, call: call)
    }

    private func assertMayLook() {
        assertNoTierLock()
        if !mayBlockAnyThread { LockChecker.assertMayLook() }
    }

    @inline(__always)
    private func throwError(_ result: Int32, call: FileSystemError.Call) throws(FileSystemError) {
        guard result < 0 else { return }
        throw FileSystemError(call, errno: Errno(rawValue: -result))
    }
}

/// Traps in a debug build where this thread holds the lock of a store's or an entry's state, or of
/// a shard of the memory tier.
@inline(__always)
func assertNoTierLock() {
    LockChecker.assertHoldsNone(ofFiles: "TieredCache/Disk")
    LockChecker.assertHoldsNone(ofFiles: "TieredCache/Memory")
}
