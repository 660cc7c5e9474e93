#if os(Linux)
import Glibc
import SystemPackage

/// Which simulations a process runs, and where it says how they went.
struct SimulationOrder: Codable, Sendable {
    /// The first seed; others follow one by one.
    var first: UInt64 = 1
    /// Seeds are taken until so many steps were made.
    var steps = 1
    /// And until so many seconds are over.
    var seconds = 0
    /// How many steps are told of a run that fails.
    var toldSteps = 80
    /// Runs each seed twice and compares the two, step by step.
    var isRepeated = false
    /// Where it says how it went, also when it dies.
    var report = ""

    /// What the environment orders; nil where it says nothing.
    ///
    /// `TIEREDCACHE_SIMULATION_SECONDS=3600` takes new seeds for an hour, from a random one on or
    /// from `TIEREDCACHE_SIMULATION_FIRST`; `TIEREDCACHE_SIMULATION_SEED=7` makes one run again and
    /// tells all of it.
    static let ofEnvironment: SimulationOrder? = {
        var order = SimulationOrder()
        if let seed = number("TIEREDCACHE_SIMULATION_SEED") {
            order.first = UInt64(seed)
            order.toldSteps = 1_000_000
            return order
        }
        guard let seconds = number("TIEREDCACHE_SIMULATION_SECONDS") else { return nil }
        order.seconds = seconds
        let first = number("TIEREDCACHE_SIMULATION_FIRST").map { UInt64($0) }
        order.first = first ?? UInt64.random(in: 1 << 32..<1 << 48)
        return order
    }()

    /// How long it may take, in minutes.
    var minutes: Int { 10 + seconds / 60 }

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }

    // MARK: Carrying it out

    /// Runs the simulations; a failure ends the process after it was told.
    func carryOut() {
        // Whatever hangs, the process ends before the test's time is over, which would end nothing.
        alarm(UInt32(clamping: 60 * (minutes - 1)))
        let file = Glibc.open(report, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        precondition(file >= 0, "cannot write \(report)")
        // What a trap says belongs into the report as well.
        dup2(file, STDERR_FILENO)
        let clock = ContinuousClock()
        let end = clock.now + .seconds(seconds)
        var (seed, done) = (first, 0)
        repeat {
            say("seed \(seed) begins")
            let outcome = run(seed)
            done += outcome.steps
            say("seed \(seed) ends after \(outcome.steps) steps, hash \(outcome.hash)")
            seed += 1
        } while done < steps || clock.now < end
        say("all is well: \(seed - first) seeds, \(done) steps")
    }

    private func run(_ seed: UInt64) -> SimulationRun.Outcome {
        var simulation = SimulationRun(seed: seed)
        simulation.toldSteps = toldSteps
        let outcome = simulation.perform()
        if let failure = outcome.failure {
            say("\(outcome.story)\nFAILED: seed \(seed), step \(outcome.steps): \(failure)")
            exit(EXIT_FAILURE)
        }
        guard isRepeated else { return outcome }
        let again = simulation.perform()
        if again.hash != outcome.hash {
            say("FAILED: seed \(seed) made two runs: \(outcome.hash) and \(again.hash)")
            exit(EXIT_FAILURE)
        }
        return outcome
    }

    private func say(_ line: String) {
        let text = line + "\n"
        text.withCString { _ = write(STDERR_FILENO, $0, strlen($0)) }
    }
}
#endif
