import Testing

@testable import TieredCache

/// Many tasks at once; worth most under the thread sanitizer.
@Suite("Request queue under load", .timeLimit(.minutes(10)))
struct RequestQueueStressTests {
    /// Counts what runs, and the most that ever ran at once.
    private final class Gauge: Sendable {
        private let counts = Guarded((running: 0, most: 0, total: 0, mostSlots: 0))

        var most: Int { counts.withLock { $0.most } }
        var mostSlots: Int { counts.withLock { $0.mostSlots } }
        var running: Int { counts.withLock { $0.running } }
        var total: Int { counts.withLock { $0.total } }

        func enter(isFirst: Bool) {
            counts.withLock { counts in
                counts.running += 1
                counts.total += isFirst ? 1 : 0
                counts.most = max(counts.most, counts.running)
            }
        }

        func note(_ slots: Int) {
            counts.withLock { $0.mostSlots = max($0.mostSlots, slots) }
        }

        func leave() {
            counts.withLock { $0.running -= 1 }
        }
    }

    /// With those that no client waits for, one may run on for a moment after its slot was taken, or
    /// until its first byte after it was leased.
    @Test(arguments: [RequestPriority.background, .normal])
    func `Everybody is completed once and the limit holds`(lowest: RequestPriority) async {
        let queue = QueueBench(
            limits: .init(
                maximumDownloads: 3,
                maximumPerHost: 2,
                maximumYielded: lowest < .normal ? 64 : 0
            ),
            executor: IOExecutor(threads: 4)
        )
        let gauge = Gauge()
        let ends = await withTaskGroup(of: [CacheError.Code?].self) { group in
            for seed in 0..<16 {
                group.addTask { await Self.requester(UInt64(seed), queue, gauge, lowest) }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        await queue.shutdown()
        #expect(ends.count == 16 * 150)
        #expect(ends.contains(nil) && ends.contains(.cancelled) && ends.contains(.originFailed))
        #expect(gauge.running == 0)
        #expect((1...3).contains(gauge.mostSlots))
        #expect(lowest < .normal || (1...3).contains(gauge.most))
        #expect(gauge.total < ends.count, "nothing was shared")
        #expect(queue.snapshot().transfers.isEmpty)
        #expect(queue.snapshot().slotsInUse == 0)
        #expect(!queue.isInUse)
    }

    /// Requests 150 times, and now and then leaves, is cancelled, or changes its mind.
    private static func requester(
        _ seed: UInt64,
        _ queue: QueueBench,
        _ gauge: Gauge,
        _ lowest: RequestPriority
    ) async -> [CacheError.Code?] {
        let priorities = RequestPriority.allCases.filter { $0 >= lowest }
        var random = SplitMix(seed: seed)
        var ends: [CacheError.Code?] = []
        for _ in 0..<150 {
            let number = Int.random(in: 0..<6, using: &random)
            let yields = Int.random(in: 0..<6, using: &random)
            let subscription = queue.join(
                "\(number)",
                coverage: 0..<10,
                host: "host\(number % 2)",
                priority: priorities.randomElement(using: &random) ?? .normal
            ) { context in
                gauge.note(queue.snapshot().slotsInUse)
                return await work(context, gauge: gauge, yields: yields)
            }
            let task = Task { await code { try await subscription.value() } }
            switch Int.random(in: 0..<5, using: &random) {
            case 0: subscription.cancel()
            case 1: task.cancel()
            case 2: subscription.priority = .playing
            default: break
            }
            ends.append(await task.value)
        }
        return ends
    }

    /// Pretends to download, with a stall in the middle; every fifth fails.
    private static func work(
        _ context: TransferContext,
        gauge: Gauge,
        yields: Int
    ) async -> Result<Void, CacheError> {
        gauge.enter(isFirst: true)
        for _ in 0..<yields { await Task.yield() }
        gauge.leave()
        context.stall()
        await Task.yield()
        do throws(CacheError) {
            try await context.unstall()
        } catch {
            return .failure(error)
        }
        gauge.enter(isFirst: false)
        defer { gauge.leave() }
        context.update { $0.didAdvance(to: 5) }
        return yields == 5 ? .failure(CacheError(.originFailed, "every fifth")) : .success(())
    }
}
