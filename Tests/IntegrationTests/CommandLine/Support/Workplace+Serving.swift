import Subprocess
import SystemPackage
import Testing

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension Workplace {
    /// Runs `tieredcache serve` in this workplace's cache directory and ends it after `body`.
    ///
    /// - Parameter body: what is done meanwhile, with the base of proxied URLs.
    func serving(_ body: (String) async throws -> Void) async throws {
        let arguments = ["serve", "--json", "--directory", cache.string]
        let result = try await Subprocess.run(
            .path(try Self.program),
            arguments: Arguments(arguments),
            input: .none,
            output: .sequence,
            error: .string(limit: 1 << 20)
        ) { execution in
            let identifier = execution.processIdentifier.value
            for try await line in execution.standardOutput.strings() {
                do {
                    let fields = JSONFields(line.filter { $0 != " " && $0 != "\n" })
                    try await body(try #require(fields.text("base")))
                } catch {
                    kill(identifier, SIGKILL)
                    throw error
                }
                kill(identifier, SIGTERM)
            }
        }
        #expect(result.terminationStatus == .exited(0), "\(result.standardError)")
    }
}
