import FoundationEssentials
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

/// Invariant 10: no body is held whole on its way through.
///
/// In a process of its own, whose peak is not that of other tests.
@Suite(.tags(.realTime), .timeLimit(.minutes(10)))
struct BoundedMemoryTests {
    private static let length: Int64 = 256 << 20
    /// What a stream may add to the process, and what an unoptimised build adds on top.
    #if THREAD_SANITIZER
    private static let allowance = (24 + 8) << 23
    #else
    private static let allowance = (24 + 8) << 20
    #endif

    @Test(
        "A body of 256 MiB for a consumer that lags does not pass through memory as a whole",
        .tags(.alone),
        arguments: ["max-age=60", "no-store"]
    )
    func streaming(_ cacheControl: String) async throws {
        let origin = try await ScriptedOrigin.start()
        origin.serve("/film", .generated(length: Self.length, cacheControl: cacheControl))
        let directory = try TemporaryDirectory("tieredcache-memory")
        let program = FilePath(CommandLine.arguments[0]).removingLastComponent()
        let outcome = try await Subprocess.run(
            .path(program.appending("tieredcache")),
            arguments: [
                "get", origin.url("/film"), "--quiet", "--directory", directory.path.string,
            ],
            input: .none,
            output: .sequence,
            error: .discarded
        ) { execution in
            var bytes: Int64 = 0
            var first: Int?
            var last = 0
            for try await chunk in execution.standardOutput {
                bytes += Int64(chunk.count)
                // Once everything has been set up, and just before the end, while the process
                // lives.
                if first == nil, bytes >= 4 << 20 {
                    first = try Self.peak(execution.processIdentifier)
                }
                if last == 0, bytes >= Self.length - (1 << 20) {
                    last = try Self.peak(execution.processIdentifier)
                }
            }
            return (bytes, last - (first ?? 0))
        }
        await origin.stop()
        let (bytes, growth) = outcome.closureResult
        #expect(bytes == Self.length)
        #expect(growth < Self.allowance, "the process grew by \(growth >> 10) KiB")
    }

    /// The most memory that a process has had resident, in bytes.
    private static func peak(_ process: ProcessIdentifier) throws -> Int {
        let path = "/proc/\(process.value)/status"
        let text = try String(decoding: Data(contentsOf: URL(filePath: path)), as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        let number = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
        return try #require(number.flatMap { Int($0) }) << 10
    }
}
