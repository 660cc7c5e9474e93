import FoundationEssentials
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCache
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
/// stands; or a write to the disk.
@Suite(
    "Serve, while something hangs",
    .tags(.realTime),
    .timeLimit(.minutes(2)),
    .enabled(if: Threads.areSeenWaiting, "/proc does not say what threads wait for")
)
struct ServeHangTests {
    /// Five seconds to end, and what a loaded machine needs to run what is asked of it.
    ///
    /// Without a limit none of these processes would ever end.
    private static let patience = Duration.seconds(15)

    /// Sends a signal to a process and notes when.
    private final class Stop: Sendable {
        private let instant = Guarded<ContinuousClock.Instant?>(nil)

        func send(_ signal: Int32, to process: pid_t) {
            instant.withLock { $0 = $0 ?? .now }
            kill(process, signal)
        }

        /// Checks how long it took to end; called when it has.
        func expectEnd(location: SourceLocation = #_sourceLocation) throws {
            let start = try #require(instant.withLock { $0 }, sourceLocation: location)
            #expect(ContinuousClock.now - start < patience, sourceLocation: location)
        }
    }

    @Test(
        "Standard output takes nothing: one signal ends it in time",
        .tags(.long),
        arguments: [SIGTERM, SIGINT]
    )
    func standardOutput(signal: Int32) async throws {
        let error = try await Self.errorAtHangingStart { $1.send(signal, to: $0) }
        #expect(error.contains("not everything had ended"), "\(error)")
    }

    @Test("Standard output takes nothing: a second signal ends it at once")
    func secondSignal() async throws {
        let error = try await Self.errorAtHangingStart { process, stop in
            stop.send(SIGTERM, to: process)
            while Threads.doHang(in: process), !Task.isCancelled {
                stop.send(SIGINT, to: process)
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
        _ end: (pid_t, Stop) async throws -> Void
    ) async throws -> String {
        var said = ""
        let stop = Stop()
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
                try await end(process, stop)
            }
            try stop.expectEnd()
            #expect(result.terminationStatus == .exited(0))
            said = result.standardError
        }
        return said
    }

    @Test(
        "Standard error takes nothing while a client is served",
        .tags(.long),
        arguments: [SIGTERM, SIGINT]
    )
    func standardError(signal: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 1000)
            let pipe = try FullPipe()
            let stop = Stop()
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
                    stop.send(signal, to: process)
                }
            }
            try stop.expectEnd()
            #expect(result.terminationStatus == .exited(0))
        }
    }

    @Test(
        "The disk takes nothing while a client is served",
        .tags(.long),
        .enabled("no filter of system calls can be had here: Linux 5.5 and Perl") {
            try await HangingDisk.isPermitted()
        },
        arguments: [SIGTERM, SIGINT]
    )
    func disk(signal: Int32) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 4 << 20)
            let stop = Stop()
            let arguments = [
                "serve", "--json", "--directory", place.cache.string, "--min-free", "0",
                "--origin", place.origin.url(""),
            ]
            try await Self.runOnHangingDisk(arguments, until: stop) { process, line in
                let server = try ServingProgram(line, process)
                let client = try RawConnection(port: server.port)
                try client.send("GET /film HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n\r\n")
                await Threads.waitUntilOneHangs(in: process, at: HangingDisk.place)
                stop.send(signal, to: process)
            }
        }
    }

    /// Runs the program on a disk that hangs: `body` gets each line that it says, and stops it.
    private static func runOnHangingDisk(
        _ arguments: [String],
        until stop: Stop,
        _ body: (pid_t, String) async throws -> Void
    ) async throws {
        let all = HangingDisk.arguments([try Workplace.program.string] + arguments)
        let result = try await Subprocess.run(
            .path(HangingDisk.program),
            arguments: Arguments(all),
            input: .none,
            output: .sequence,
            error: .string(limit: 1 << 20)
        ) { execution in
            for try await line in execution.standardOutput.strings() {
                try await body(execution.processIdentifier.value, line)
            }
        }
        try stop.expectEnd()
        #expect(result.terminationStatus == .exited(0), "\(result.standardError)")
    }

    @Test(
        "The disk takes nothing, and what served has ended by itself",
        .tags(.long),
        .enabled("no filter of system calls can be had here: Linux 5.5 and Perl") {
            try await HangingDisk.isPermitted()
        }
    )
    func diskAfterServing() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/film", length: 4 << 20)
            let film = place.origin.url("/film")
            let stop = Stop()
            let arguments = ["background", "--idle", "1", "--directory", place.cache.string]
            try await Self.runOnHangingDisk(arguments, until: stop) { process, _ in
                let port = try #require(place.servingLine("port").flatMap { Int($0) })
                let token = try #require(place.servingLine("token"))
                let client = try RawConnection(port: port)
                try client.send(
                    "GET /\(token)/\(film.replacing("://", with: "/")) HTTP/1.1\r\n"
                        + "Host: 127.0.0.1:\(port)\r\n\r\n"
                )
                await Threads.waitUntilOneHangs(in: process, at: HangingDisk.place)
                client.reset()
                while place.backgroundProcess != nil, !Task.isCancelled { await Task.yield() }
                stop.send(SIGTERM, to: process)
            }
        }
    }
}

/// What the threads of another process wait for.
private enum Threads {
    static var areSeenWaiting: Bool { access("/proc/self/wchan", R_OK) == 0 }

    /// Where a thread waits for room in a pipe.
    static let pipe = "pipe_write"

    /// Returns once a thread waits there, or there is no such process.
    static func waitUntilOneHangs(in process: pid_t, at place: String = pipe) async {
        let tasks = "/proc/\(process)/task"
        while !Task.isCancelled, let threads = names(in: tasks), !threads.isEmpty {
            if doHang(in: process, at: place) { return }
            await Task.yield()
        }
        Issue.record("the process has ended, or the time is over, before anything hung")
    }

    /// Whether a thread waits there.
    static func doHang(in process: pid_t, at place: String = pipe) -> Bool {
        let tasks = "/proc/\(process)/task"
        return (names(in: tasks) ?? []).contains {
            text(of: "\(tasks)/\($0)/wchan").contains(place)
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
