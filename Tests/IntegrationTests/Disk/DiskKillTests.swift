import Foundation
import Subprocess
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

/// SIGKILL at random instants of a real process on a real disk.
///
/// `TIEREDCACHE_KILLS` sets how often.
@Suite("SIGKILL of a writer", .tags(.realTime), .timeLimit(.minutes(20)))
struct DiskKillTests {
    @Test(
        "five hundred times: every byte right, every byte accounted, no file leaked",
        .tags(.long)
    )
    func killed() async throws {
        let kills = ProcessInfo.processInfo.environment["TIEREDCACHE_KILLS"] ?? "500"
        let seed = UInt64.random(in: 0 ... .max)
        let files = try TemporaryDirectory("tieredcache-kill")
        let program = try Workplace.program.removingLastComponent().appending("DiskKillWorker")
        let result = try await Subprocess.run(
            .path(program),
            arguments: [files.appending("cache").string, kills, "\(seed)"],
            output: .string(limit: 1 << 20),
            error: .string(limit: 1 << 20)
        )
        let said = "\(result.standardOutput) \(result.standardError), seed \(seed)"
        #expect(result.terminationStatus == .exited(0), "\(said)")
        let words = result.standardOutput.split(whereSeparator: \.isWhitespace)
        #expect(words.prefix(2).map(String.init) == ["kills", kills], "\(said)")
        // It must have found something to compare.
        let entries = words.dropFirst(3).first.flatMap { Int($0) } ?? 0
        #expect(entries > 0, "\(said)")
    }
}
