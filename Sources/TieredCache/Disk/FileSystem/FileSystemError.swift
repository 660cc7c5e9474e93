package import SystemPackage

/// A call that failed: small, so that a miss by `ENOENT` costs no sentence.
///
/// It becomes a ``CacheError`` once, where the path is known.
package struct FileSystemError: Error, Hashable, Sendable {
    /// The calls, named as people say them.
    package enum Call: String, Hashable, Sendable, CaseIterable {
        /// Opening a file or directory.
        case open
        /// Creating a file or directory.
        case create
        /// Reading.
        case read
        /// Writing.
        case write
        /// Changing a file's length, or punching a hole.
        case resize
        /// Asking for a status.
        case inspect
        /// Renaming.
        case rename
        /// Removing a name.
        case remove
        /// Listing a directory.
        case list
        /// Waiting for the medium.
        case sync
        /// Locking.
        case lock
    }

    /// What failed.
    package var call: Call
    /// Why.
    package var errno: Errno

    /// Creates an error.
    package init(_ call: Call, errno: Errno) {
        self.call = call
        self.errno = errno
    }
}

extension FileSystemError {
    /// Whether no file of ours has the name: a link, a directory or a pipe in its place is not
    /// ours.
    var isAbsence: Bool {
        switch errno {
        // ELOOP is what `RESOLVE_NO_SYMLINKS` says of a link; ESPIPE is what `pread` says of a
        // pipe.
        case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .isDirectory,
            .noSuchAddressOrDevice, .illegalSeek:
            true
        default:
            false
        }
    }
}

/// What a call finds; nil where nothing has the name.
func ifPresent<Found>(
    _ look: () throws(FileSystemError) -> Found
) throws(FileSystemError) -> Found? {
    do throws(FileSystemError) {
        return try look()
    } catch  where error.errno == .noSuchFileOrDirectory {
        return nil
    }
}

extension CacheError {
    /// The sentence for a failed call: what, on which file, why, and what to do.
    init(_ error: FileSystemError, path: FilePath) {
        var message = "cannot \(error.call.rawValue) \(path): \(error.errno)"
        if let remedy = Self.remedy(for: error.errno) {
            message += "; \(remedy)"
        }
        self.init(.localStorage, message, cause: error)
    }

    private static func remedy(for errno: Errno) -> String? {
        switch errno {
        case .noSpace, .diskQuotaExceeded:
            "free disk space or lower the cache's limit"
        case .readOnlyFileSystem:
            "choose a directory on a writable volume"
        case .permissionDenied, .notPermitted:
            "make the directory belong to this user and writable to no other, or choose another"
        case .tooManyOpenFiles, .tooManyOpenFilesInSystem:
            "raise the limit of open files (ulimit -n)"
        case .ioError:
            "check the disk"
        case .notDirectory, .tooManySymbolicLinkLevels, .isDirectory, .noSuchAddressOrDevice:
            "move away what stands in its place"
        case .fileNameTooLong:
            "choose a directory with a shorter path"
        default:
            nil
        }
    }
}
