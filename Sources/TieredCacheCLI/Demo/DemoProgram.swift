import Subprocess
import SystemPackage

/// Runs this program in separate processes, to show that one process finds the entries of another.
struct DemoProgram: Sendable {
    /// The outcome of a child process.
    struct Outcome: Sendable {
        /// The lines on standard output.
        let lines: [String]
        let succeeded: Bool

        /// The report of `get --json` in the last line; nil if it is none.
        var report: GetReport? {
            do {
                return try JSONLine.value(of: lines.last ?? "")
            } catch {
                return nil  // Every claim about it fails, which is more informative.
            }
        }
    }

    let cacheDirectory: FilePath

    private var executable: Executable {
        #if os(Linux)
        .path("/proc/self/exe")
        #else
        .path(FilePath(CommandLine.arguments[0]))
        #endif
    }

    /// Runs a command to its end; its standard error is inherited.
    func run(_ arguments: [String]) async throws -> Outcome {
        let result = try await Subprocess.run(
            executable,
            arguments: Arguments(arguments + ["--directory", cacheDirectory.string]),
            output: .string(limit: 1 << 20),
            error: .currentStandardError
        )
        let output = result.standardOutput
        return Outcome(
            lines: output.split(separator: "\n").map(String.init),
            succeeded: result.terminationStatus.isSuccess
        )
    }

    /// Starts a command and kills it with SIGKILL when `moment` returns.
    func runAndKill(_ arguments: [String], when moment: @Sendable () async -> Void) async throws {
        _ = try await Subprocess.run(
            executable,
            arguments: Arguments(arguments + ["--directory", cacheDirectory.string]),
            input: .none,
            output: .discarded,
            error: .currentStandardError
        ) { execution in
            await moment()
            try execution.send(signal: .kill)
        }
    }
}
