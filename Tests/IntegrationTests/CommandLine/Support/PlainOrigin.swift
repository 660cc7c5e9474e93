import Subprocess
import SystemPackage
import Testing
import TieredCacheTesting

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Python's `http.server`: no ranges, no entity tags, no freshness; `Last-Modified` alone.
///
/// What people start when they want to look at a file from another machine.
enum PlainOrigin {
    /// Runs tests only where Python is installed.
    static var isInstalled: ConditionTrait {
        .enabled(if: program != nil, "python3 is not installed")
    }

    private static var program: FilePath? {
        guard let path = getenv("PATH") else { return nil }
        return String(cString: path).split(separator: ":")
            .map { FilePath(String($0)).appending("python3") }
            .first { access($0.string, X_OK) == 0 }
    }

    /// Serves the files of a directory for the time of `body`.
    ///
    /// - Parameters:
    ///   - directory: what is served.
    ///   - body: what is done meanwhile, with the server's port.
    /// - Returns: the lines of the server's log, one for each request among others.
    static func serving(
        _ directory: FilePath,
        _ body: (Int) async throws -> Void
    ) async throws -> [String] {
        let result = try await Subprocess.run(
            .path(try #require(program)),
            arguments: ["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"],
            workingDirectory: directory,
            input: .none,
            output: .sequence,
            error: .string(limit: 4 << 20)
        ) { execution in
            defer { kill(execution.processIdentifier.value, SIGKILL) }
            for try await line in execution.standardOutput.strings() {
                // "Serving HTTP on 127.0.0.1 port 12345 (http://127.0.0.1:12345/) ..."
                let words = line.split(separator: " ")
                let place = try #require(words.firstIndex(of: "port"), "\(line)")
                try await body(try #require(Int(words[place + 1])))
                return
            }
            Issue.record("python3 said nothing")
        }
        return result.standardError.split(separator: "\n").map(String.init)
    }
}
