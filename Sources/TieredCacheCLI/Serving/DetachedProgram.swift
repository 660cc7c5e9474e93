import CLinuxCalls
import FoundationEssentials
import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A process of this program that outlives the command that starts it.
///
/// Two commands start one: the first has the lock of the directory (flock(2)), which the process
/// inherits and gives up when it can be found, whatever has become of the command by then.
struct DetachedProgram {
    /// How long it may take to start, and another command to start it.
    private static let startTimeout = Duration.seconds(20)

    /// What it is, for messages: "the proxy".
    let name: String
    /// What to try where it does not start.
    let remedy: String
    /// Its arguments, by the absolute path of the directory.
    let arguments: (FilePath) -> [String]

    /// Finds the process, or starts it.
    ///
    /// - Parameters:
    ///   - path: the cache directory, which is made if need be.
    ///   - find: gives the process where it answers.
    /// - Returns: what `find` gives.
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed``, and what the process says.
    func find<Found>(
        orStartIn path: FilePath?,
        _ find: (FilePath) throws -> Found?
    ) async throws -> Found {
        guard let path else {
            throw CommandFailure(.localFailed, message: "there is no cache directory")
        }
        if let found = try find(path) { return found }
        let directory = try Self.make(path)
        let lock = try FileDescriptor.open(
            directory,
            .readOnly,
            options: [.directory, .closeOnExec]
        )
        return try await lock.closeAfterAsync {
            if let found = try await other(in: directory, lock, find) { return found }
            try await start(in: directory, lock: lock)
            if let found = try find(directory) { return found }
            throw CommandFailure(
                .localFailed,
                message: "\(name) that was started for \(directory) does not answer; try again"
            )
        }
    }

    /// Makes the directory if need be: the lock of those that start is on it.
    ///
    /// - Returns: its absolute path, as the process works elsewhere.
    private static func make(_ path: FilePath) throws(CommandFailure) -> FilePath {
        do {
            try FileManager.default.createDirectory(
                atPath: path.string,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw CommandFailure(
                .localFailed,
                message: "cannot make the cache directory \(path): \(Errno(rawValue: errno))"
            )
        }
        guard let resolved = realpath(path.string, nil) else {
            throw CommandFailure(
                .localFailed,
                message: "cannot use the cache directory \(path): \(Errno(rawValue: errno))"
            )
        }
        defer { free(resolved) }
        return FilePath(platformString: resolved)
    }

    /// Takes the lock, or waits for the process that another command starts.
    ///
    /// - Returns: that process; nil if this command has to start one.
    private func other<Found>(
        in directory: FilePath,
        _ lock: FileDescriptor,
        _ find: (FilePath) throws -> Found?
    ) async throws -> Found? {
        let end = ContinuousClock.now + Self.startTimeout
        while flock(lock.rawValue, LOCK_EX | LOCK_NB) != 0 {
            // Where directories cannot be locked two may be started; one is found, and both end.
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            if let found = try find(directory) { return found }
            guard ContinuousClock.now < end else {
                throw CommandFailure(
                    .localFailed,
                    message: "another command has been starting \(name) for \(directory) for "
                        + "\(Self.startTimeout.components.seconds) s; try again"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try find(directory)
    }

    // MARK: Starting

    private func start(in directory: FilePath, lock: FileDescriptor) async throws {
        let pipe = try FileDescriptor.pipe()
        let (process, line) = try pipe.readEnd.closeAfter {
            // This end has to be closed here, so that the other one ends with the process.
            let process = try pipe.writeEnd.closeAfter {
                try spawn(directory, output: pipe.writeEnd, lock: lock)
            }
            return (process, try Self.firstLine(of: pipe.readEnd))
        }
        guard let line else {
            // It has not said anything, and would go on with the lock.
            kill(process, SIGKILL)
            throw CommandFailure(
                .localFailed,
                message: "\(name) for \(directory) did not start; try '\(remedy)'"
            )
        }
        let report: BackgroundReport = try JSONLine.value(of: line)
        guard let message = report.message else { return }
        guard let status = report.status.flatMap({ ExitStatus(rawValue: $0) }) else {
            return StandardError.write("tieredcache: \(message)".asOneLine)
        }
        throw CommandFailure(status, message: message)
    }

    private func spawn(
        _ directory: FilePath,
        output: FileDescriptor,
        lock: FileDescriptor
    ) throws -> Int32 {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(
                .localFailed,
                message: "the program's own file is not to be found; try '\(remedy)'"
            )
        }
        defer { free(program) }
        var words = (["tieredcache"] + arguments(directory)).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let process = tc_spawn_detached(program, &words, output.rawValue, lock.rawValue)
        guard process < 0 else { return process }
        throw CommandFailure(
            .localFailed,
            message: "cannot start \(name) in the background: \(Errno(rawValue: -process))"
        )
    }

    /// - Returns: nil if it ends without a line, or says none in time.
    private static func firstLine(of pipe: FileDescriptor) throws -> String? {
        let end = ContinuousClock.now + startTimeout
        var bytes: [UInt8] = []
        while !bytes.contains(UInt8(ascii: "\n")) {
            let left = ContinuousClock.now.duration(to: end) / .milliseconds(1)
            var wanted = pollfd(fd: pipe.rawValue, events: Int16(POLLIN), revents: 0)
            let ready = left > 0 ? poll(&wanted, 1, Int32(left.rounded(.up))) : 0
            if ready < 0 && errno == EINTR { continue }
            guard ready > 0 else { return nil }
            var part = [UInt8](repeating: 0, count: 4096)
            let count = try part.withUnsafeMutableBytes { try pipe.read(into: $0) }
            guard count > 0 else { return nil }
            bytes += part[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: In the process

    /// Closes the pipe to the command that has started this process, and gives its lock up.
    static func leaveStarter() {
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        if nothing >= 0 {
            dup2(nothing, 1)
            close(nothing)
        }
        // Where nothing was inherited, as by hand, it is a descriptor of our own.
        let flags = fcntl(3, F_GETFD)
        if flags >= 0, flags & FD_CLOEXEC == 0 { close(3) }
    }
}

extension FileDescriptor {
    /// Runs `body` and closes the file behind it.
    fileprivate func closeAfterAsync<Result>(
        _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body()
            try close()
            return result
        } catch {
            try close()
            throw error
        }
    }
}
