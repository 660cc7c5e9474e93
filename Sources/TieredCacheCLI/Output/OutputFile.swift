import CLinuxCalls
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The user's FILE: it appears only when complete, and no other file is left on success or failure.
///
/// A symbolic link is preserved: its target is written, and created if missing.
///
/// The bytes are written to an unnamed file in the same directory (O_TMPFILE), of which even a
/// SIGKILL leaves no trace; it gets its name at the end. If the file system does not support that,
/// a named temporary file is used, which is removed on failure and at a signal. Other files than
/// regular ones (a terminal, a pipe, `/dev/null`) are written directly.
///
/// For one task only; if it is released without ``complete()``, FILE is unchanged.
final class OutputFile {
    /// How the bytes are written to FILE.
    private enum Kind {
        case unnamed
        case temporary(FilePath)
        case direct
    }

    /// The paths of existing temporary files, for ``discardAll()``.
    private static let temporaries = Guarded<Set<FilePath>>([])

    /// FILE with symbolic links resolved, so that links are preserved.
    private let target: FilePath
    private let descriptor: FileDescriptor
    private let kind: Kind
    private let shownPath: String
    private var isClosed = false

    /// Checks that FILE can be written, before any fetch.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed``.
    convenience init(_ path: String) throws(CommandFailure) {
        try self.init(path, allowsUnnamed: true)
    }

    /// The same as ``init(_:)``; with `allowsUnnamed` false, for tests, a named temporary file is
    /// used.
    init(_ path: String, allowsUnnamed: Bool) throws(CommandFailure) {
        shownPath = path
        do {
            // `FilePath` drops the slash, so that a file would be created instead of a directory.
            guard !path.hasSuffix("/") else { throw Errno.isDirectory }
            let existing = try ExistingFile.look(at: FilePath(path))
            target = try existing?.path ?? ExistingFile.end(ofDangling: FilePath(path))
            guard existing?.isRegular ?? true else {
                kind = .direct
                descriptor = try .open(target, .writeOnly)
                return
            }
            let opened = try Self.openHidden(
                beside: target,
                permissions: existing?.permissions,
                allowsUnnamed: allowsUnnamed
            )
            (descriptor, kind) = opened
        } catch {
            throw Self.failure(at: path, error: error)
        }
    }

    deinit {
        guard !isClosed else { return }
        if case .temporary(let path) = kind { Self.remove(path) }
        do {
            try descriptor.close()
        } catch {
            // The bytes are discarded anyway.
        }
    }

    /// Appends bytes.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) {
        do {
            try descriptor.writeAll(bytes)
        } catch {
            throw Self.failure(at: shownPath, error: error)
        }
    }

    /// Discards the written bytes, because the representation has changed.
    ///
    /// - Throws: ``CommandFailure``; always if FILE is written directly, because the old bytes
    ///   cannot be removed.
    func restart() throws(CommandFailure) {
        if case .direct = kind {
            let reason =
                "the representation changed while it was written to \(shownPath); get it again"
            throw CommandFailure(.originFailed, message: reason)
        }
        do {
            try descriptor.resize(to: 0)
            try descriptor.seek(offset: 0, from: .start)
        } catch {
            throw Self.failure(at: shownPath, error: error)
        }
    }

    /// Makes the bytes available as FILE.
    func complete() throws(CommandFailure) {
        do {
            switch kind {
            case .direct: break
            case .temporary(let path): try Self.rename(path, to: target)
            case .unnamed: try name()
            }
            isClosed = true
            // A network file system reports a failed write here.
            try descriptor.close()
        } catch {
            throw Self.failure(at: shownPath, error: error)
        }
    }

    /// Removes temporary files before an immediate exit.
    static func discardAll() {
        for path in temporaries.withLock({ $0 }) { remove(path) }
    }
}

extension OutputFile {
    /// Links the unnamed file to its name; if FILE exists, with a temporary name and a rename,
    /// because linkat cannot replace a file.
    private func name() throws {
        let result = target.withPlatformString { tc_link_unnamed(descriptor.rawValue, $0) }
        guard result != 0 else { return }
        // linkat(2) replaces no file: the second name is then renamed over it.
        guard -result == EEXIST else { throw Errno(rawValue: -result) }
        let temporary = Self.temporaryPath(beside: target)
        Self.temporaries.withLock { _ = $0.insert(temporary) }
        let second = temporary.withPlatformString { tc_link_unnamed(descriptor.rawValue, $0) }
        guard second == 0 else {
            Self.remove(temporary)
            throw Errno(rawValue: -second)
        }
        do {
            try Self.rename(temporary, to: target)
        } catch {
            Self.remove(temporary)
            throw error
        }
    }

    private static func openHidden(
        beside target: FilePath,
        permissions: mode_t?,
        allowsUnnamed: Bool
    ) throws -> (FileDescriptor, Kind) {
        let opened = try open(beside: target, allowsUnnamed: allowsUnnamed)
        guard let permissions else { return opened }
        // A replaced file keeps its permissions, if possible.
        _ = fchmod(opened.0.rawValue, permissions)
        return opened
    }

    private static func open(
        beside target: FilePath,
        allowsUnnamed: Bool
    ) throws -> (FileDescriptor, Kind) {
        let parent = target.removingLastComponent()
        let directory = parent.isEmpty ? FilePath(".") : parent
        if allowsUnnamed {
            let result = directory.withPlatformString { tc_open_unnamed($0, 0o666) }
            if result >= 0 { return (FileDescriptor(rawValue: result), .unnamed) }
            // open(2): a file system without O_TMPFILE says EOPNOTSUPP, a kernel before Linux 3.11
            // EISDIR.
            guard [EOPNOTSUPP, EISDIR].contains(-result) else { throw Errno(rawValue: -result) }
        }
        let path = temporaryPath(beside: target)
        temporaries.withLock { _ = $0.insert(path) }
        do {
            let descriptor = try FileDescriptor.open(
                path,
                .readWrite,
                options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: FilePermissions(rawValue: 0o666)
            )
            return (descriptor, .temporary(path))
        } catch {
            temporaries.withLock { _ = $0.remove(path) }
            throw error
        }
    }

    private static func temporaryPath(beside target: FilePath) -> FilePath {
        let mark = String(UInt64.random(in: .min ... .max), radix: 36)
        // In bytes, as NAME_MAX is: 255, of which the rest of the name needs about 20.
        let name = String(
            decoding: (target.lastComponent?.string ?? "").utf8.prefix(100),
            as: UTF8.self
        )
        return target.removingLastComponent().appending(".\(name).\(mark).part")
    }

    private static func rename(_ path: FilePath, to target: FilePath) throws {
        let result = path.withPlatformString { from in
            target.withPlatformString { renameFile(from, to: $0) }
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
        temporaries.withLock { _ = $0.remove(path) }
    }

    private static func remove(_ path: FilePath) {
        _ = path.withPlatformString { unlink($0) }
        temporaries.withLock { _ = $0.remove(path) }
    }

    private static func failure(at path: String, error: any Error) -> CommandFailure {
        CommandFailure(.localFailed, message: "cannot write \(path): \(error)")
    }
}

// The method with this name hides the function.
private func renameFile(
    _ from: UnsafePointer<CChar>,
    to target: UnsafePointer<CChar>
) -> Int32 {
    rename(from, target)
}

/// The file at FILE before it is written.
private struct ExistingFile {
    /// The path without symbolic links.
    let path: FilePath
    let isRegular: Bool
    let permissions: mode_t

    /// - Returns: the file; nil if there is none.
    /// - Throws: `Errno` if it is a directory, is not writable, or cannot be inspected.
    static func look(at path: FilePath) throws -> ExistingFile? {
        var status = stat()
        guard path.withPlatformString({ stat($0, &status) }) == 0 else {
            guard errno == ENOENT else { throw Errno(rawValue: errno) }
            return nil
        }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw Errno.isDirectory }
        guard path.withPlatformString({ access($0, W_OK) }) == 0 else {
            throw Errno(rawValue: errno)
        }
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        let resolved = isRegular ? try resolve(path) : path
        return ExistingFile(
            path: resolved,
            isRegular: isRegular,
            permissions: status.st_mode & 0o7777
        )
    }

    /// The target of a dangling symbolic link; `path` itself if it is no link.
    static func end(ofDangling path: FilePath) throws -> FilePath {
        var path = path
        // The kernel's limit of links.
        for _ in 0..<40 {
            guard let next = linkTarget(of: path) else { return path }
            path = path.removingLastComponent().pushing(next)
        }
        throw Errno.tooManySymbolicLinkLevels
    }

    private static func linkTarget(of path: FilePath) -> FilePath? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = path.withPlatformString { readlink($0, start, Int(PATH_MAX)) }
            guard count > 0 else { return nil }
            buffer[count] = 0
            return FilePath(platformString: start)
        }
    }

    private static func resolve(_ path: FilePath) throws -> FilePath {
        guard let buffer = path.withPlatformString({ realpath($0, nil) }) else {
            throw Errno(rawValue: errno)
        }
        defer { free(buffer) }
        return FilePath(platformString: buffer)
    }
}
