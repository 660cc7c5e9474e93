import CLinuxCalls
import SystemPackage
import TieredCache

/// A socket of the file system at which this process listens, for processes of its user.
///
/// What touches the file system runs on threads that may wait for it (invariant 7); SwiftNIO gets a
/// descriptor, and takes it over.
struct OwnerListener: Sendable {
    let descriptor: CInt
    private let socket: OwnerSocket
    private let file: tc_named_file
    private let threads: IOExecutor

    /// Begins to listen, in the place of a socket that is there.
    ///
    /// - Parameters:
    ///   - path: the name of the socket.
    ///   - backlog: how many connections may wait until they are accepted.
    ///   - threads: those that may wait for the file system.
    ///   - isWanted: asked when a thread has the time: the name may be another process's by then.
    /// - Returns: the listener; ``removeName()`` ends what it began.
    /// - Throws: the error of the system, `EADDRINUSE` where a file has the name; `ECANCELED` where
    ///   it is wanted no more.
    static func listen(
        at path: FilePath,
        backlog: Int32,
        on threads: IOExecutor,
        if isWanted: @Sendable () -> Bool
    ) async throws -> OwnerListener {
        try await threads.run {
            guard isWanted() else { throw Errno.canceled }
            let socket = try OwnerSocket(at: path)
            var file = tc_named_file()
            let descriptor = socket.path.withPlatformString { tc_listen_at($0, backlog, &file) }
            guard descriptor >= 0 else { throw Errno(rawValue: -descriptor) }
            return OwnerListener(
                descriptor: descriptor,
                socket: socket,
                file: file,
                threads: threads
            )
        }
    }

    /// Removes the name, unless it is another process's by now; call it while the descriptor is
    /// open.
    func removeName() async {
        await threads.run {
            // A name that stays is that of an owner that has crashed.
            _ = socket.path.withPlatformString { path in
                withUnsafePointer(to: file) { tc_unlink_file(path, $0) }
            }
        }
    }
}
