package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The socket at which the owner of a cache directory answers its guests, `OWNER` in the directory,
/// or another one that answers processes of this user.
///
/// A path in a socket's address has at most 107 bytes. For a longer one the directory is opened,
/// and the path leads through its descriptor.
package final class OwnerSocket: Sendable {
    /// The name in the directory.
    package static let name = "OWNER"
    private static let maximumLength = 107

    /// The path for `bind` and `connect`, good as long as this object lives.
    package let path: FilePath
    private let directory: FileDescriptor?

    /// Names the socket; it need not be there.
    ///
    /// - Parameter directory: the cache directory.
    /// - Throws: the error of the system, where a directory with a long path cannot be opened.
    package convenience init(in directory: FilePath) throws {
        try self.init(at: directory.appending(Self.name))
    }

    /// Names a socket of any path, such as that of an agent.
    ///
    /// - Parameter path: its path; it need not be there.
    /// - Throws: the error of the system, where a directory with a long path cannot be opened.
    package init(at path: FilePath) throws {
        guard path.string.utf8.count > Self.maximumLength else {
            (self.path, self.directory) = (path, nil)
            return
        }
        let opened = try FileDescriptor.open(
            path.removingLastComponent(),
            .readOnly,
            options: [.directory, .closeOnExec]
        )
        self.path = FilePath("/proc/self/fd/\(opened.rawValue)")
            .appending(path.lastComponent.map { [$0] } ?? [])
        self.directory = opened
    }

    /// Whether an owner listens in a directory, or one did that has crashed.
    package static func isThere(in directory: FilePath) -> Bool {
        var status = stat()
        return lstat(directory.appending(name).string, &status) == 0
            && status.st_mode & S_IFMT == S_IFSOCK
    }

    deinit {
        do {
            try directory?.close()
        } catch {
            // The system has the descriptor back all the same.
        }
    }
}
