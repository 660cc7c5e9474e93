import Subprocess
import SystemPackage
import Testing

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What a serving program said when it was ready.
struct ServingProgram {
    let line: String
    let base: String
    let port: Int
    let processIdentifier: pid_t

    /// Reads the line that `serve --json` prints.
    init(_ line: String, _ identifier: pid_t) throws {
        self.line = line.filter { $0 != "\n" }
        let fields = JSONFields(self.line.filter { $0 != " " })
        base = try #require(fields.text("base"))
        port = Int(try #require(fields.integer("port")))
        processIdentifier = identifier
    }
}

extension Workplace {
    /// Runs `tieredcache serve --json` in this workplace's cache directory, and ends it with a
    /// signal after `body`.
    ///
    /// - Returns: how it ended.
    @discardableResult
    func serve(
        _ arguments: String...,
        signal: Int32 = SIGTERM,
        _ body: (ServingProgram) async throws -> Void
    ) async throws -> TerminationStatus {
        try await serve(arguments, signal: signal, body)
    }

    /// The same with arguments that were put together before.
    ///
    /// - Parameter descriptors: how many the program may have; nil for as many as this process.
    @discardableResult
    func serve(
        _ arguments: [String],
        descriptors: Int? = nil,
        signal: Int32 = SIGTERM,
        _ body: (ServingProgram) async throws -> Void
    ) async throws -> TerminationStatus {
        let all = ["serve", "--json", "--directory", cache.string] + arguments
        let program = try Self.program
        let limited = descriptors.map { limit in
            ["-c", "ulimit -n \(limit); exec \"$0\" \"$@\"", program.string] + all
        }
        let result = try await Subprocess.run(
            .path(limited == nil ? program : "/bin/sh"),
            arguments: Arguments(limited ?? all),
            input: .none,
            output: .sequence,
            error: .string(limit: 1 << 20)
        ) { execution in
            let identifier = execution.processIdentifier.value
            for try await line in execution.standardOutput.strings() {
                do {
                    try await body(try ServingProgram(line, identifier))
                } catch {
                    kill(identifier, SIGKILL)
                    throw error
                }
                kill(identifier, signal)
            }
        }
        // It ended by itself, and not because its time to stop was over.
        #expect(!result.standardError.contains("not everything had ended"))
        return result.terminationStatus
    }

    /// Runs `tieredcache serve` meanwhile, which has to end well.
    ///
    /// - Parameter body: what is done, with the base of proxied URLs.
    func serving(_ body: (String) async throws -> Void) async throws {
        let status = try await serve { try await body($0.base) }
        #expect(status == .exited(0))
    }
}
