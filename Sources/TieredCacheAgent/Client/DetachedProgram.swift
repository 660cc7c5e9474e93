import CLinuxCalls
import FoundationEssentials
package import SystemPackage
import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A process of the program `tieredcache` that outlives the process that starts it.
///
/// Two start one: the first has the lock of the directory (flock(2)), which the process inherits
/// and gives up when it can be found, whatever has become of its starter by then.
package struct DetachedProgram: Sendable {
    /// How long it may take to start, and another process to start it.
    private static let startTimeout = Duration.seconds(20)

    /// Why it does not run.
    package struct Failure: Error, Hashable {
        /// The exit code that the program has, or would have.
        package let status: Int32
        package let message: String

        /// Makes one, by default of a local failure.
        package init(status: Int32 = 74, _ message: String) {
            self.status = status
            self.message = message
        }
    }

    /// What it is, for messages: "the proxy".
    private let name: String
    /// What to try where it does not start.
    private let remedy: String
    /// The file of the program; nil where it is not to be found.
    private let file: FilePath?
    /// Its arguments, by the absolute path of the directory.
    private let arguments: @Sendable (FilePath) -> [String]
    /// Called with what is wrong where it runs all the same.
    private let warn: @Sendable (String) -> Void

    package init(
        name: String,
        remedy: String,
        file: FilePath?,
        warn: @escaping @Sendable (String) -> Void = { _ in },
        arguments: @escaping @Sendable (FilePath) -> [String]
    ) {
        self.name = name
        self.remedy = remedy
        self.file = file
        self.warn = warn
        self.arguments = arguments
    }

    /// The file of the program that calls; nil where it is not to be found.
    package static var ownFile: FilePath? {
        guard let path = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(path) }
        return FilePath(platformString: path)
    }

    /// Finds the process, or starts it.
    ///
    /// - Parameters:
    ///   - path: the cache directory, which is made if need be.
    ///   - find: gives the process where it answers.
    /// - Returns: what `find` gives.
    /// - Throws: ``Failure``, also for what the process says.
    package func find<Found>(
        orStartIn path: FilePath?,
        _ find: (FilePath) throws -> Found?
    ) async throws -> Found {
        guard let path else {
            throw Failure("there is no cache directory")
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
            try start(in: directory, lock: lock)
            if let found = try find(directory) { return found }
            throw Failure(
                "\(name) that was started for \(directory) does not answer; try again"
            )
        }
    }

    /// Makes the directory if need be: the lock of those that start is on it.
    ///
    /// - Returns: its absolute path, as the process works elsewhere.
    private static func make(_ path: FilePath) throws(Failure) -> FilePath {
        do {
            try FileManager.default.createDirectory(
                atPath: path.string,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw Failure(
                "cannot make the cache directory \(path): \(Errno(rawValue: errno))"
            )
        }
        guard let resolved = realpath(path.string, nil) else {
            throw Failure(
                "cannot use the cache directory \(path): \(Errno(rawValue: errno))"
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
                throw Failure(
                    "another command has been starting \(name) for \(directory) for "
                        + "\(Self.startTimeout.components.seconds) s; try again"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try find(directory)
    }

    // MARK: Starting

    private func start(in directory: FilePath, lock: FileDescriptor) throws {
        guard let report = try report(in: directory, lock: lock) else {
            throw Failure("\(name) for \(directory) did not start; try '\(remedy)'")
        }
        guard let message = report.message else { return }
        guard let status = report.status else { return warn(message) }
        throw Failure(status: status, message)
    }

    /// Starts the process, and takes leave of it.
    ///
    /// - Returns: what it says; nil where that is nothing that this program says.
    private func report(
        in directory: FilePath,
        lock: FileDescriptor
    ) throws -> BackgroundReport? {
        let pipe = try FileDescriptor.pipe()
        return try pipe.readEnd.closeAfter {
            // This end has to be closed here, so that the other one ends with the process.
            let process = try pipe.writeEnd.closeAfter {
                try spawn(directory, output: pipe.writeEnd, lock: lock)
            }
            var report: BackgroundReport?
            defer {
                // It would go on with the lock; and what has spoken has left this process behind.
                if report == nil { kill(-process, SIGKILL) }
                while waitpid(process, nil, 0) < 0, errno == EINTR {}
            }
            guard let line = try Self.firstLine(of: pipe.readEnd) else { return nil }
            do {
                report = try JSONDecoder().decode(BackgroundReport.self, from: Data(line.utf8))
            } catch {
                // Another program says such things.
            }
            return report
        }
    }

    private func spawn(
        _ directory: FilePath,
        output: FileDescriptor,
        lock: FileDescriptor
    ) throws -> Int32 {
        guard let file else {
            throw Failure("the program's own file is not to be found; try '\(remedy)'")
        }
        var words = (["tieredcache"] + arguments(directory)).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        let process = tc_spawn_detached(file.string, &words, output.rawValue, lock.rawValue)
        guard process < 0 else { return process }
        throw Failure(
            "cannot start \(name) in the background: \(Errno(rawValue: -process))"
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

    /// Whether this process was started as one, with these arguments: in a session of its own.
    package static func isOne(with arguments: [String]) -> Bool {
        let names = [["background"], ["agent", "--background"]]
        return getsid(0) == getpid()
            && names.contains { arguments.dropFirst().starts(with: $0) }
    }

    /// Closes the pipe to the command that has started this process, and gives its lock up.
    package static func leaveStarter() {
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

/// What such a process says when it is ready, or fails.
package struct BackgroundReport: Codable, Equatable {
    /// What is wrong; nil if nothing is.
    package var message: String?
    /// The exit code; nil if it serves all the same.
    package var status: Int32?

    package init(message: String? = nil, status: Int32? = nil) {
        self.message = message
        self.status = status
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
