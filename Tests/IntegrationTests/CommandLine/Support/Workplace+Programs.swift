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

extension Workplace {
    /// Runs a program by `tieredcache exec` in this workplace's cache directory.
    ///
    /// No signal is ignored, as some are in this process by tests of signals.
    @discardableResult
    func exec(
        _ words: String...,
        options: [String] = [],
        meanwhile: (Running) async throws -> Void = { _ in }
    ) async throws -> ProgramOutcome {
        try await runPlain(
            ["--default-signal", try Self.program.string, "exec", "--directory", cache.string]
                + options + ["--"] + words,
            program: "/usr/bin/env",
            meanwhile: meanwhile
        )
    }

    /// Runs a script by `sh`, in which `$0` is the program, `$1` the cache directory, and `$2` the
    /// URL of a target.
    func shell(_ script: String, _ target: String) async throws -> ProgramOutcome {
        try await runPlain(
            ["--default-signal", "sh", "-c", script]
                + [try Self.program.string, cache.string, origin.url(target)],
            program: "/usr/bin/env"
        )
    }

    /// The number of the background proxy's process, by the file that it writes for people.
    var backgroundProcess: pid_t? { servingLine("process").flatMap { pid_t($0) } }

    /// What the file `SERVING` says behind a word.
    func servingLine(_ word: String) -> String? {
        guard let text = try? String(decoding: cacheFiles()["SERVING"] ?? .init(), as: UTF8.self)
        else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(word) ") }
        return line.map { String($0.dropFirst(word.count + 1)) }
    }

    /// Waits until a process that is not ours has ended.
    func waitForEnd(of process: pid_t) async throws {
        _ = try await Subprocess.run(
            .path("/usr/bin/tail"),
            arguments: ["--pid=\(process)", "-s", "0.05", "-f", "/dev/null"],
            output: .discarded
        )
    }

    /// Ends the background proxy, if there is one.
    func endBackground(by signal: Int32 = SIGTERM) async throws {
        guard let process = backgroundProcess, kill(process, signal) == 0 else { return }
        try await waitForEnd(of: process)
    }

    /// Does `body` and ends the background proxy behind it.
    static func withBackground(_ body: (Workplace) async throws -> Void) async throws {
        try await with { place in
            do {
                try await body(place)
            } catch {
                try await place.endBackground()
                throw error
            }
            try await place.endBackground()
        }
    }
}
