import Dispatch
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

@Suite("Interruption", .tags(.realTime), .timeLimit(.minutes(10)))
struct InterruptionTests {
    @Test("Without a signal the result is the body's")
    func undisturbed() async throws {
        #expect(try await Interruption.guarding { 7 } == 7)
        await #expect(throws: CommandFailure(.originFailed, message: "x")) {
            try await Interruption.guarding { throw CommandFailure(.originFailed, message: "x") }
        }
    }

    @Test("A second signal counts unless it is the echo of the first")
    func second() {
        let flag = SignalFlag()
        #expect(!flag.isRaised)
        let first = DispatchTime(uptimeNanoseconds: 1_000_000_000)
        for (late, isSecond) in [(0, false), (0, false), (299, false), (300, true), (9000, true)] {
            #expect(flag.raise(at: first + .milliseconds(late)) == isSecond, "\(late) ms")
            #expect(flag.isRaised)
        }
        #expect(!flag.raise(at: DispatchTime(uptimeNanoseconds: 1)))
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
