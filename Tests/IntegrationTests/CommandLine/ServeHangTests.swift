import FoundationEssentials
import Subprocess
import SystemPackage
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tieredcache serve` while one of its threads waits in the kernel for what never comes: a signal
/// ends the process all the same.
///
/// What hangs is a write to a pipe that is full and not read, as of a pager or a journal that
/// stands.
@Suite(
    "Serve, while something hangs",
    .timeLimit(.minutes(2)),
    .enabled(if: Threads.areSeenWaiting, "/proc does not say what threads wait for")
)
struct ServeHangTests {
    @Test(
        "Standard output takes nothing: one signal ends it in time",
        arguments: [SIGTERM, SIGINT]
    )
    func standardOutput(signal: Int32) async throws {
        let error = try await Self.errorAtHangingStart { kill($0, signal) }
        #expect(error.contains("not everything had ended"), "\(error)")
    }

    @Test("Standard output takes nothing: a second signal ends it at once")
    func secondSignal() async throws {
        let error = try await Self.errorAtHangingStart { process in
            kill(process, SIGTERM)
            while Threads.doHang(in: process), !Task.isCancelled {
                kill(process, SIGINT)
                await Task.yield()
            }
        }
        #expect(error.contains("at the second signal"), "\(error)")
    }

    /// Runs the program with a standard output that takes nothing.
    ///
    /// - Parameter stop: what is done once it hangs.
    /// - Returns: what it says on standard error.
    private static func errorAtHangingStart(
        _ stop: (pid_t) async throws -> Void
    ) async throws -> String {
        var said = ""
        try await Workplace.with { place in
            let pipe = try FullPipe()
            let result = try await Subprocess.run(
                .path(try Workplace.program),
                arguments: ["serve", "--directory", place.cache.string],
                input: .none,
                output: .fileDescriptor(pipe.writing, closeAfterSpawningProcess: false),
                error: .string(limit: 1 << 20)
            ) { execution in
                let process = execution.processIdentifier.value
                await Threads.waitUntilOneHangs(in: process)
                try await stop(process)
            }
            #expect(result.terminationStatus == .exited(0))
            said = result.standardError
        }
        return said
    }

    @Test(
        "Standard error takes nothing while a client is served",
        arguments: [SIGTERM, SIGINT]
    )
    func standardError(signal: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let pipe = try FullPipe()
            let arguments = [
                "serve", "--json", "--log-level", "debug", "--directory", place.cache.string,
                "--origin", place.origin.url(""),
            ]
            let result = try await Subprocess.run(
                .path(try Workplace.program),
                arguments: Arguments(arguments),
                input: .none,
                output: .sequence,
                error: .fileDescriptor(pipe.writing, closeAfterSpawningProcess: false)
            ) { execution in
                let process = execution.processIdentifier.value
                for try await line in execution.standardOutput.strings() {
                    let server = try ServingProgram(line, process)
                    let client = try RawConnection(port: server.port)
                    // What it lacks is logged.
                    try client.send("GET /a HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n")
                    await Threads.waitUntilOneHangs(in: process)
                    kill(process, signal)
                }
            }
            #expect(result.terminationStatus == .exited(0))
        }
    }
}

/// What the threads of another process wait for.
private enum Threads {
    static var areSeenWaiting: Bool { access("/proc/self/wchan", R_OK) == 0 }

    /// Returns once a thread waits for room in a pipe, or there is no such process.
    static func waitUntilOneHangs(in process: pid_t) async {
        let tasks = "/proc/\(process)/task"
        while !Task.isCancelled, let threads = names(in: tasks), !threads.isEmpty {
            if doHang(in: process) { return }
            await Task.yield()
        }
        Issue.record("the process has ended, or the time is over, before anything hung")
    }

    /// Whether a thread waits for room in a pipe.
    static func doHang(in process: pid_t) -> Bool {
        let tasks = "/proc/\(process)/task"
        return (names(in: tasks) ?? []).contains {
            text(of: "\(tasks)/\($0)/wchan").contains("pipe_write")
        }
    }

    private static func names(in directory: String) -> [String]? {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            return nil  // The process is gone.
        }
    }

    private static func text(of path: String) -> String {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// A pipe that takes nothing more, and that is not read.
private final class FullPipe: Sendable {
    let writing: FileDescriptor
    private let reading: FileDescriptor

    init() throws {
        (reading, writing) = try FileDescriptor.pipe()
        try #require(fcntl(writing.rawValue, F_SETFL, O_NONBLOCK) == 0)
        for count in [4096, 1] {
            let bytes = [UInt8](repeating: 0x2E, count: count)
            while write(writing.rawValue, bytes, count) > 0 {}
        }
        try #require(errno == EAGAIN && fcntl(writing.rawValue, F_SETFL, 0) == 0)
    }

    deinit {
        close(reading.rawValue)
        close(writing.rawValue)
    }
}
