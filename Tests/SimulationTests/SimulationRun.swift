#if os(Linux)
import HTTPCaching
import TieredCacheTesting

@testable import TieredCache

/// One simulation from its seed to its end.
struct SimulationRun {
    let seed: UInt64
    var profile: SimulationProfile
    var pace: SimulationPace
    /// How many steps are told of a run that fails.
    var toldSteps = 80
    private var die: Die

    /// How it went.
    struct Outcome {
        let seed: UInt64
        let steps: Int
        /// Equal for equal runs.
        let hash: UInt64
        /// What went wrong.
        let failure: String?
        /// What the run had, and its last steps.
        let story: String
    }

    init(seed: UInt64) {
        self.seed = seed
        die = Die(seed: seed)
        profile = SimulationProfile(die: &die)
        pace = SimulationPace()
        pace.switches = die.pick([5, 30, 100])
        pace.freezes = die.chance(2, of: 3)
        pace.freezeEvery = profile.freezeEvery
        pace.widths = die.pick([[3, 4, 4], [2, 2, 2], [4, 8, 8]])
    }

    /// Runs it to its end, or to its first failure.
    func perform() -> Outcome {
        var die = die
        let time = ManualTimeSource()
        let scheduler = SimulationScheduler(seed: die.next(), pace: pace, time: time)
        scheduler.trace.capacity = toldSteps
        let world = SimulatedWorld(scheduler, profile, die: &die)
        let plans = (0..<profile.clients).map { client in
            SimulationPlan(profile, client: client, die: die.split())
        }
        let remains = Remains()
        scheduler.run {
            world.open()
            await withTaskGroup { group in
                for (number, plan) in plans.enumerated() {
                    group.addTask { await run(plan, SimulatedClient(number: number, world: world)) }
                }
            }
            await finish(world, remains)
        }
        var failure = scheduler.failure
        if failure == nil { failure = remains.complaint(world) }
        return Outcome(
            seed: seed,
            steps: scheduler.stepCount,
            hash: scheduler.trace.hash,
            failure: failure,
            story: "\(profile)\n\(pace)\n\(scheduler.trace.lastSteps(toldSteps))"
        )
    }

    private func run(_ plan: SimulationPlan, _ client: SimulatedClient) async {
        var plan = plan
        for _ in 0..<profile.operations { await plan.act(client) }
    }

    /// Looks at what is left when all clients have ended.
    private func finish(_ world: SimulatedWorld, _ remains: Remains) async {
        let client = SimulatedClient(number: profile.clients, world: world)
        world.disk.heal()
        for url in 0..<profile.urls {
            await client.checkPromise(url)
            if world.model.isPromised(url) {
                await client.get(url, SimulationPlan.Get(policy: .cacheOnly))
            }
        }
        if profile.isDiskSound {
            await client.attempt("verifies at the end") { (process) throws(CacheError) in
                var result = try await process.cache.verify()
                if result.damaged > 0 {
                    // What was replaced last may be about to be removed.
                    await client.sleep(.seconds(1))
                    result = try await process.cache.verify()
                }
                if result.damaged > 0 { client.fail("undamaged, and verify says: \(result)") }
            }
        }
        if profile.isDiskSound, !profile.limitChanges { await checkRestart(world, client) }
        remains.watch(world.process?.cache.engine.storage)
        await world.close()
    }

    /// What memory says to be complete is so on the disk as well.
    private func checkRestart(_ world: SimulatedWorld, _ client: SimulatedClient) async {
        // Transfers that nothing reads any more end by then, and replace nothing.
        await client.sleep(.seconds(120))
        let before = await completeBodies(client)
        await world.restart()
        let after = await completeBodies(client)
        for (url, bytes) in before.sorted(by: { $0.key < $1.key }) where bytes > after[url] ?? 0 {
            client.fail("u\(url) had \(bytes) bytes, and \(after[url] ?? 0) after a restart")
        }
    }

    private func completeBodies(_ client: SimulatedClient) async -> [Int: Int64] {
        var result: [Int: Int64] = [:]
        for url in 0..<profile.urls {
            await client.attempt("looks at u\(url)") { (process) throws(CacheError) in
                // The unsealed end of a transfer under way is in memory only.
                let entry = try await process.cache.entry(for: client.request(url))
                if let entry, entry.isComplete { result[url] = entry.storedBytes }
            }
        }
        return result
    }

    /// What must be gone at the end.
    private final class Remains: Sendable {
        private struct Watched {
            weak var storage: Storage?
        }

        private let watched = Guarded(Watched())

        /// Every part of the cache that runs holds its storage.
        func watch(_ storage: Storage?) { watched.withLock { $0.storage = storage } }

        func complaint(_ world: SimulatedWorld) -> String? {
            if watched.withLock({ $0.storage }) != nil { return "a task is left that never ends" }
            let files = world.openFiles
            return files.isEmpty ? nil : "files are left open: \(files)"
        }
    }
}
#endif
