import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

@Suite("Interruption", .timeLimit(.minutes(10)))
struct InterruptionTests {
    @Test("Without a signal the result is the body's")
    func undisturbed() async throws {
        #expect(try await Interruption.guarding { 7 } == 7)
        await #expect(throws: CommandFailure(.originFailed, "x")) {
            try await Interruption.guarding { throw CommandFailure(.originFailed, "x") }
        }
    }

    @Test("A cancelled caller cancels the body")
    func cancelled() async {
        let task = Task {
            try await Interruption.guarding {
                await OriginGate().wait()
                return 1
            }
        }
        task.cancel()
        #expect(await (try? task.value) == 1)
    }
}
