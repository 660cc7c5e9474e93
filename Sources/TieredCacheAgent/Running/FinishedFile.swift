import CLinuxCalls
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file of a download, made of a body that is complete and verified.
///
/// It has no name (O_TMPFILE) until all of it is there, so that no crash leaves a part of one; on
/// file systems without such files it has a hidden one, `.NUMBER.part`. copy_file_range(2) shares
/// the blocks where the file system can, and copies in the kernel elsewhere; between kinds of file
/// systems it is read and written. A hard link to the cache's own file would be wrong: eviction
/// makes holes in that one. Calls block on the disk.
final class FinishedFile: Sendable {
    private static let piece = 8 << 20
    private static let maximumNumber = 9999

    private let place: DownloadPath
    private let descriptor: FileDescriptor
    /// The hidden name; nil for a file without one.
    private let hidden: FilePath?

    /// Makes a file, and the directories above it.
    ///
    /// - Parameters:
    ///   - place: where it goes.
    ///   - openUnnamed: opens a file without a name in a folder: a descriptor, or a negative errno.
    /// - Throws: ``DownloadFailure``.
    init(
        at place: DownloadPath,
        openUnnamed: (FilePath) -> CInt = { folder in
            folder.withPlatformString { tc_open_unnamed($0, 0o666) }
        }
    ) throws(DownloadFailure) {
        self.place = place
        let folder = place.path.removingLastComponent()
        try Self.makeDirectories(folder)
        let result = openUnnamed(folder)
        if result >= 0 {
            (descriptor, hidden) = (FileDescriptor(rawValue: result), nil)
            return
        }
        guard [EOPNOTSUPP, EISDIR, EINVAL].contains(-result) else {
            throw Self.failure("create a file in \(folder)", Errno(rawValue: -result), code: 16)
        }
        let name = Self.hiddenName(in: folder)
        do {
            descriptor = try FileDescriptor.open(
                name,
                .writeOnly,
                options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: FilePermissions(rawValue: 0o666)
            )
        } catch {
            let reason = error as? Errno ?? .ioError
            throw Self.failure("create a file in \(folder)", reason, code: 16)
        }
        hidden = name
    }

    private static func hiddenName(in folder: FilePath) -> FilePath {
        folder.appending(".\(String(UInt64.random(in: 0 ... .max), radix: 36)).part")
    }

    deinit {
        // Without a name it is gone with its last descriptor; a hidden one that was renamed is gone.
        close(descriptor.rawValue)
        if let hidden { unlink(hidden.string) }
    }

    private static func failure(_ what: String, _ error: Errno, code: Int) -> DownloadFailure {
        DownloadFailure(
            file: "cannot \(what): \(error)",
            code: error == .noSpace || error == .diskQuotaExceeded ? 9 : code
        )
    }

    private static func makeDirectories(_ path: FilePath) throws(DownloadFailure) {
        guard mkdir(path.string, 0o777) != 0, errno != EEXIST else { return }
        guard errno == ENOENT, path.string != "/" else {
            throw failure("make the directory \(path)", Errno(rawValue: errno), code: 18)
        }
        try makeDirectories(path.removingLastComponent())
        guard mkdir(path.string, 0o777) != 0, errno != EEXIST else { return }
        throw failure("make the directory \(path)", Errno(rawValue: errno), code: 18)
    }

    /// Copies all of a file.
    ///
    /// - Parameters:
    ///   - body: its path.
    ///   - goesOn: asked before each piece.
    /// - Returns: its length; nil where it was told to stop.
    /// - Throws: ``DownloadFailure``.
    func copy(_ body: FilePath, while goesOn: () -> Bool) throws(DownloadFailure) -> Int64? {
        do {
            let source = try FileDescriptor.open(body, .readOnly, options: .closeOnExec)
            return try source.closeAfter {
                var length: Int64 = 0
                // What the kernel refuses to copy is read and written.
                var buffer: [UInt8] = []
                while goesOn() {
                    let count =
                        buffer.isEmpty
                        ? tc_copy_file_range(source.rawValue, descriptor.rawValue, Self.piece)
                        : try Self.copy(source, to: descriptor, by: &buffer)
                    if count == 0 { return length }
                    if count == -Int(EINTR) { continue }
                    if buffer.isEmpty, Self.refusals.contains(CInt(clamping: -count)) {
                        buffer = [UInt8](repeating: 0, count: 1 << 20)
                        continue
                    }
                    guard count > 0 else { throw Errno(rawValue: CInt(clamping: -count)) }
                    length += Int64(count)
                }
                return nil
            }
        } catch {
            let reason = error as? Errno ?? .ioError
            throw Self.failure("write \(place.path)", reason, code: 17)
        }
    }

    /// Between file systems, kinds of them, or by a kernel without the call.
    private static let refusals = [EXDEV, EOPNOTSUPP, ENOSYS, EINVAL, EPERM]

    private static func copy(
        _ source: FileDescriptor,
        to target: FileDescriptor,
        by buffer: inout [UInt8]
    ) throws -> Int {
        let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
        return try target.writeAll(buffer.prefix(count))
    }

    /// What tells the file from any other.
    var identity: (device: UInt64, file: UInt64)? {
        Self.status(descriptor).map { (UInt64($0.st_dev), UInt64($0.st_ino)) }
    }

    private static func status(_ file: FileDescriptor) -> stat? {
        var status = stat()
        return fstat(file.rawValue, &status) == 0 ? status : nil
    }

    /// The first path that is free, or the one that is replaced.
    ///
    /// - Throws: ``DownloadFailure`` where a file is there and must stay, and no other may be made.
    func freePath(overwrites: Bool, renames: Bool) throws(DownloadFailure) -> FilePath {
        var status = stat()
        if overwrites || lstat(place.path.string, &status) != 0 { return place.path }
        guard renames else {
            throw DownloadFailure(file: "File \(place.path) exists", code: 13)
        }
        for number in 1...Self.maximumNumber {
            let path = place.numbered(number)
            if lstat(path.string, &status) != 0 { return path }
        }
        throw DownloadFailure(file: "File renaming failed: \(place.path)", code: 14)
    }

    /// Gives the file its name.
    ///
    /// - Returns: false where another file has got it meanwhile.
    /// - Throws: ``DownloadFailure``.
    func link(as path: FilePath, overwrites: Bool) throws(DownloadFailure) -> Bool {
        if let hidden { return try Self.rename(hidden, to: path, overwrites: overwrites) }
        let result = path.withPlatformString { tc_link_unnamed(descriptor.rawValue, $0) }
        if result == 0 { return true }
        guard -result == EEXIST, overwrites else {
            guard -result != EEXIST else { return false }
            throw Self.failure("name \(path)", Errno(rawValue: -result), code: 16)
        }
        // linkat(2) replaces no file: a second name is renamed over it.
        let second = Self.hiddenName(in: path.removingLastComponent())
        let linked = second.withPlatformString { tc_link_unnamed(descriptor.rawValue, $0) }
        guard linked == 0 else {
            throw Self.failure("name \(path)", Errno(rawValue: -linked), code: 16)
        }
        do throws(DownloadFailure) {
            return try Self.rename(second, to: path, overwrites: true)
        } catch {
            unlink(second.string)
            throw error
        }
    }

    private static func rename(
        _ hidden: FilePath,
        to path: FilePath,
        overwrites: Bool
    ) throws(DownloadFailure) -> Bool {
        var result = tc_rename(hidden.string, path.string, overwrites)
        if result == -EINVAL, !overwrites {
            // A file system that cannot say in one call that nothing may be replaced.
            var status = stat()
            guard lstat(path.string, &status) != 0 else { return false }
            result = tc_rename(hidden.string, path.string, true)
        }
        if result == 0 { return true }
        guard -result != EEXIST || overwrites else { return false }
        throw failure("name \(path)", Errno(rawValue: -result), code: 16)
    }

    /// What tells the file of a path from any other; nil where there is none.
    static func identity(of path: FilePath) -> (device: UInt64, file: UInt64)? {
        var status = stat()
        guard lstat(path.string, &status) == 0 else { return nil }
        return (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    /// Whether the file of an earlier process got its name before that died.
    static func isThere(_ delivery: DownloadRecord.Delivery, length: Int64) -> Bool {
        var status = stat()
        guard lstat(delivery.path, &status) == 0 else { return false }
        return UInt64(status.st_dev) == delivery.device && UInt64(status.st_ino) == delivery.file
            && Int64(status.st_size) == length
    }
}
