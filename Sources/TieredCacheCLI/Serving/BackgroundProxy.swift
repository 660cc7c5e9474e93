import CLinuxCalls
import FoundationEssentials
import SystemPackage
import TieredCache
import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The proxy of a directory that outlives the command that starts it.
///
/// Two commands start one: the first has the lock of the directory (flock(2)), which the proxy
/// inherits and gives up when it can be found, whatever has become of the command by then.
enum BackgroundProxy {
    /// How long it waits for a client.
    static let idle = TimeSpan(.seconds(600))
    /// How long it may take to start, and another command to start it.
    private static let startTimeout = Duration.seconds(20)

    /// The proxy that runs for a directory, `serve` included; starts one if there is none.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed``, and what the proxy throws.
    static func find(orStart options: CacheOptions, idle: TimeSpan) async throws -> RunningProxy {
        guard let path = options.configuration().path else {
            throw CommandFailure(.localFailed, message: "there is no cache directory")
        }
        if let proxy = RunningProxy.find(in: path) { return proxy }
        let directory = try make(path)
        let lock = try FileDescriptor.open(
            directory,
            .readOnly,
            options: [.directory, .closeOnExec]
        )
        return try await lock.closeAfterAsync {
            if let proxy = try await other(in: directory, lock) { return proxy }
            try await start(options, in: directory, idle: idle, lock: lock)
            if let proxy = RunningProxy.find(in: directory) { return proxy }
            throw CommandFailure(
                .localFailed,
                message: "the proxy that was started for \(directory) does not answer; try again"
            )
        }
    }

    /// Makes the directory if need be: the lock of those that start is on it.
    ///
    /// - Returns: its absolute path, as the proxy works elsewhere.
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

    /// Takes the lock, or waits for the proxy that another command starts.
    ///
    /// - Returns: that proxy; nil if this command has to start one.
    private static func other(
        in directory: FilePath,
        _ lock: FileDescriptor
    ) async throws -> RunningProxy? {
        let end = ContinuousClock.now + startTimeout
        while flock(lock.rawValue, LOCK_EX | LOCK_NB) != 0 {
            // Where directories cannot be locked two may be started; one is found, and both end.
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            if let proxy = RunningProxy.find(in: directory) { return proxy }
            guard ContinuousClock.now < end else {
                throw CommandFailure(
                    .localFailed,
                    message: "another command has been starting a proxy for \(directory) for "
                        + "\(startTimeout.components.seconds) s; try again"
                )
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return RunningProxy.find(in: directory)
    }

    // MARK: Starting

    private static func start(
        _ options: CacheOptions,
        in directory: FilePath,
        idle: TimeSpan,
        lock: FileDescriptor
    ) async throws {
        let pipe = try FileDescriptor.pipe()
        let (process, line) = try pipe.readEnd.closeAfter {
            // This end has to be closed here, so that the other one ends with the proxy.
            let process = try pipe.writeEnd.closeAfter {
                try spawn(options, directory, idle, output: pipe.writeEnd, lock: lock)
            }
            return (process, try firstLine(of: pipe.readEnd))
        }
        guard let line else {
            // It has not said anything, and would go on with the lock.
            kill(process, SIGKILL)
            throw CommandFailure(
                .localFailed,
                message: "the proxy for \(directory) did not start; try 'tieredcache serve'"
            )
        }
        let report: BackgroundReport = try JSONLine.value(of: line)
        guard let message = report.message else { return }
        guard let status = report.status.flatMap({ ExitStatus(rawValue: $0) }) else {
            return StandardError.write("tieredcache: \(message)".asOneLine)
        }
        throw CommandFailure(status, message: message)
    }

    private static func spawn(
        _ options: CacheOptions,
        _ directory: FilePath,
        _ idle: TimeSpan,
        output: FileDescriptor,
        lock: FileDescriptor
    ) throws -> Int32 {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(
                .localFailed,
                message: "the program's own file is not to be found; try 'tieredcache serve'"
            )
        }
        defer { free(program) }
        let words = BackgroundCommand.arguments(for: options, directory, idle: idle)
        var arguments = (["tieredcache"] + words).map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let process = tc_spawn_detached(program, &arguments, output.rawValue, lock.rawValue)
        guard process < 0 else { return process }
        throw CommandFailure(
            .localFailed,
            message: "cannot start a proxy in the background: \(Errno(rawValue: -process))"
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
