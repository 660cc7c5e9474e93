#if os(Linux)
import FoundationEssentials
import Glibc
import TestParts
import Testing

/// Deterministic tests of the whole engine; see docs/simulation.md.
///
/// Each runs in a process of its own: a trap there is a failure with a seed, and the order of sets
/// and dictionaries can be the same each time.
@Suite(.tags(.realTime), .timeLimit(.minutes(SimulationOrder.ofEnvironment?.minutes ?? 10)))
struct SimulationTests {
    @Test("a seed makes the same run each time, step by step")
    func determinism() async throws {
        var order = SimulationOrder()
        order.steps = 40_000
        order.isRepeated = true
        try await carryOut(order)
    }

    @Test("the engine keeps its promises for some hundred thousand steps", .tags(.seeded))
    func promises() async throws {
        var order = SimulationOrder.ofEnvironment ?? SimulationOrder()
        if SimulationOrder.ofEnvironment == nil { order.steps = TestCases.all ? 400_000 : 60_000 }
        try await carryOut(order)
    }

    private func carryOut(_ order: SimulationOrder) async throws {
        var order = order
        let name = "simulation-\(UInt64.random(in: .min ... .max)).txt"
        order.report = FileManager.default.temporaryDirectory.appending(path: name).path
        // Where sets and dictionaries begin is otherwise another place in each process.
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        defer { unsetenv("SWIFT_DETERMINISTIC_HASHING") }
        await #expect(processExitsWith: .success) { [order] in
            order.carryOut()
        }
        let report = try Data(contentsOf: URL(filePath: order.report))
        try FileManager.default.removeItem(atPath: order.report)
        let text = String(decoding: report, as: UTF8.self)
        let lines = text.split(separator: "\n")
        // Not the last line: the test library adds bytes of its own to the standard error.
        let success = lines.last { $0.hasPrefix("all is well") }
        if let success { return print(success) }
        Issue.record("\(lines.drop { !$0.contains("SimulationProfile") }.joined(separator: "\n"))")
        let failure = lines.last { $0.hasPrefix("FAILED") || $0.contains("Fatal error") }
        // A trap says no seed.
        let last = lines.last { $0.hasSuffix(" begins") } ?? "no seed begins"
        Issue.record(
            "\(last): \(failure ?? "no end")\nTIEREDCACHE_SIMULATION_SEED=n swift test --filter SimulationTests"
        )
    }
}
#endif
