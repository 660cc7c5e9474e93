#if os(Linux)
import Glibc
import Testing

/// A deterministic test of the whole engine: docs/simulation.md.
@Suite(.timeLimit(.minutes(10)))
struct SimulationTests {
    @Test("a seed makes the same run each time")
    func determinism() async {
        await #expect(processExitsWith: .success) {
            for seed in UInt64(1)...8 {
                let (one, other) = (SimulationRun(seed: seed).perform(), SimulationRun(seed: seed).perform())
                print("seed \(seed) steps \(one.steps) \(other.steps) hash \(one.hash) \(other.hash)")
                if let failure = one.failure { print(failure) }
            }
        }
    }
}
#endif
