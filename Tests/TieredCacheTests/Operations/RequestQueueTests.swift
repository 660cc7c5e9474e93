import Testing

@testable import TieredCache

@Suite("Request queue", .timeLimit(.minutes(10)))
struct RequestQueueTests {
    private let queue = QueueBench(executor: IOExecutor(threads: 2))

    private func makeQueue(_ downloads: Int, perHost: Int = 6) -> QueueBench {
        QueueBench(limits: .init(maximumDownloads: downloads, maximumPerHost: perHost))
    }

    @Test
    func `Those that want the same bytes share one transfer and its result`() async throws {
        let work = ControlledWork()
        let first = queue.join("a", work)
        let second = queue.join("a", ControlledWork())
        #expect(first.isFirst && !second.isFirst)
        #expect(first.transfer == second.transfer)
        work.finish()
        try await first.value()
        try await second.value()
        try await second.value()
        #expect(queue.snapshot().transfers.isEmpty)
    }

    @Test
    func `Work that begins on its caller's thread can leave it, and does so once`() async throws {
        let seen = SeenThreads()
        // The caller's thread is none of the queue's, as that of an event loop.
        let subscription = await IOExecutor(threads: 1).run {
            seen.note()
            return queue.join("a") { context in
                seen.note()
                for _ in 0..<2 {
                    await context.leaveCallersThread()
                    seen.note()
                }
                return .success(())
            }
        }
        try await subscription.value()
        let threads = seen.threads
        try #require(threads.count == 4)
        #expect(threads[0] == threads[1])
        #expect(threads[1] != threads[2])
        #expect(threads[2] == threads[3])
    }

    @Test
    func `Work that begins on a thread of the queue stays there`() async throws {
        let seen = SeenThreads()
        let executor = IOExecutor(threads: 1)
        let queue = QueueBench(executor: executor)
        let subscription = await executor.run {
            queue.join("a") { context in
                seen.note()
                // There is no other thread that it could go to.
                await context.leaveCallersThread()
                seen.note()
                return .success(())
            }
        }
        try await subscription.value()
        #expect(seen.threads.count == 2 && Set(seen.threads).count == 1)
    }

    @Test
    func `A failure reaches everybody`() async {
        let work = ControlledWork()
        let subscriptions = (0..<3).map { _ in queue.join("a", work) }
        work.release.complete(with: .failure(CacheError(.originFailed, "no")))
        for subscription in subscriptions {
            #expect(await code { try await subscription.value() } == .originFailed)
        }
    }

    @Test
    func `A joiner beyond the coverage or behind the position gets a new transfer`() async throws {
        let work = ControlledWork()
        let first = queue.join("a", work, coverage: 0..<100)
        try await work.context().update { $0.didAdvance(to: 50) }
        let inside = queue.join("a", ControlledWork(), at: 50)
        let behind = queue.join("a", ControlledWork(), at: 49, coverage: 49..<100)
        let beyond = queue.join("a", ControlledWork(), at: 100, coverage: 100..<200)
        #expect(inside.transfer == first.transfer)
        #expect(behind.isFirst && beyond.isFirst)
        behind.cancel()
        try await work.context().update { $0.shrink(to: 60) }
        #expect(queue.join("a", ControlledWork(), at: 60, coverage: 60..<100).isFirst)
        queue.cancelAll()
    }

    @Test
    func `The next position is that of the nearest transfer of the key that still brings bytes`()
        async throws
    {
        let works = (0..<6).map { _ in ControlledWork() }
        let near = queue.join("a", works[0], at: 100, coverage: 100..<200)
        let far = queue.join("a", works[1], at: 500, coverage: 500..<600)
        let other = queue.join("b", works[2], at: 60, coverage: 60..<70)
        let left = queue.join("a", works[3], at: 70, coverage: 70..<80)
        let done = queue.join("a", works[4], at: 80, coverage: 80..<90)
        _ = try await works[3].context()
        left.cancel()
        try await works[4].context().update { $0.didAdvance(to: 90) }
        #expect(next(after: 0, of: "a") == 100)
        try await works[0].context().update { $0.didAdvance(to: 150) }
        #expect(next(after: 100, of: "a") == 150)
        #expect(next(after: 150, of: "a") == 500)
        #expect(next(after: 500, of: "a") == nil)
        // The block that a transfer is in is its own.
        let block = Int64(65_536)
        let long = queue.join("a", works[5], at: block, coverage: block..<9 * block)
        try await works[5].context().update { $0.didAdvance(to: 4 * block + 10) }
        #expect(next(after: 2 * block, of: "a") == 4 * block)
        #expect(next(after: 4 * block + 5, of: "a") == 4 * block + 10)
        #expect(next(after: 0, of: "c") == nil)
        withExtendedLifetime((near, far, other, done, long)) {}
        queue.cancelAll()
    }

    private func next(after offset: Int64, of name: String) -> Int64? {
        queue.resource(name).state.withLock { $0.resource.nextPosition(after: offset) }
    }

    @Test
    func `A transfer ends where another one goes on that began first, if it is to`() async throws {
        let block = Int64(65_536)
        let far = queue.join("a", ControlledWork(), at: 9 * block, coverage: 9 * block..<20 * block)
        for stopsAtOthers in [false, true] {
            let end = Latch<Int64>()
            let first = queue.join(
                "a",
                coverage: 0..<20 * block,
                stopsAtOthers: stopsAtOthers
            ) { context in
                end.complete(with: .success(context.end))
                return .success(())
            }
            try await first.value()
            let wanted = (stopsAtOthers ? 9 : 20) * block
            #expect(first.isFirst && first.end == wanted)
            #expect(try await end.wait()?.get() == wanted)
        }
        withExtendedLifetime(far) {}
        queue.cancelAll()
    }

    @Test
    func `Requests that differ in selecting fields never join`() {
        let subscriptions = ["alice", "bob"].map { user in
            queue.join("a", selector: user) { _ in .success(()) }
        }
        #expect(subscriptions.map(\.isFirst) == [true, true])
    }

    @Test
    func `Six run at once, the seventh when one has ended`() async throws {
        let works = (0..<7).map { _ in ControlledWork() }
        let subscriptions = works.enumerated().map { queue.join("\($0)", $1) }
        for work in works.prefix(6) { _ = try await work.context() }
        #expect(queue.snapshot().count(.running) == 6)
        #expect(queue.snapshot().count(.queued) == 1)
        #expect(!works[6].hasStarted)
        works[2].finish()
        _ = try await works[6].context()
        try await subscriptions[2].value()
        for work in works { work.finish() }
        for subscription in subscriptions { try await subscription.value() }
    }

    @Test
    func `A full host does not hold up the others`() async throws {
        let queue = makeQueue(6, perHost: 1)
        let works = (0..<3).map { _ in ControlledWork() }
        let subscriptions = [
            queue.join("a", works[0], host: "busy"),
            queue.join("b", works[1], host: "busy", priority: .playing),
            queue.join("c", works[2], host: "idle", priority: .background),
        ]
        _ = try await works[2].context()
        #expect(!works[1].hasStarted)
        works[0].finish()
        _ = try await works[1].context()
        for work in works { work.finish() }
        for subscription in subscriptions { try await subscription.value() }
    }

    @Test
    func `The most urgent goes first, also when it becomes so while it waits`() async throws {
        let queue = makeQueue(1)
        let works = (0..<4).map { _ in ControlledWork() }
        let running = queue.join("running", works[0])
        let normal = queue.join("normal", works[1])
        let high = queue.join("high", works[2], priority: .high)
        let raised = queue.join("raised", works[3], priority: .background)
        raised.priority = .playing
        #expect(raised.priority == .playing)
        var ends = [works[0]]
        for expected in [works[3], works[2], works[1]] {
            ends.removeLast().finish()
            _ = try await expected.context()
            #expect(queue.snapshot().count(.running) == 1)
            ends.append(expected)
        }
        ends.removeLast().finish()
        for subscription in [running, normal, high, raised] { try await subscription.value() }
    }

    @Test
    func `A transfer is as urgent as its most urgent subscriber, which may leave`() async throws {
        let work = ControlledWork()
        let first = queue.join("a", work, priority: .prefetch)
        let context = try await work.context()
        let second = queue.join("a", ControlledWork(), priority: .playing)
        #expect(context.priority == .playing)
        second.cancel()
        #expect(context.priority == .prefetch)
        #expect(await code { try await second.value() } == .cancelled)
        work.finish()
        try await first.value()
        #expect(context.priority == .background)
    }

    @Test
    func `A leader that leaves hands over, the last one cancels`() async throws {
        let work = ControlledWork()
        let leader = queue.join("a", work)
        let other = queue.join("a", ControlledWork())
        let context = try await work.context()
        leader.cancel()
        #expect(await code { try await leader.value() } == .cancelled)
        #expect(!context.isCancelled)
        other.cancel()
        #expect(context.isCancelled)
        let returned = try #require(await work.returned.wait())
        #expect(throws: CacheError.self) { try returned.get() }
        let late = queue.join("a", ControlledWork())
        #expect(late.isFirst)
    }

    @Test
    func `A cancel that comes before the start wins`() async throws {
        let queue = makeQueue(1)
        let (work, waiting) = (ControlledWork(), ControlledWork())
        let running = queue.join("a", work)
        let cancelled = queue.join("b", waiting)
        cancelled.cancel()
        #expect(await code { try await cancelled.value() } == .cancelled)
        work.finish()
        try await running.value()
        #expect(!waiting.hasStarted)
    }

    @Test
    func `Cancelling the task that waits leaves`() async throws {
        let work = ControlledWork()
        let subscription = queue.join("a", work)
        let context = try await work.context()
        let task = Task { await code { try await subscription.value() } }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(context.isCancelled)
        #expect(await code { try await subscription.value() } == .cancelled)
    }

    @Test
    func `Releasing a subscription leaves`() async throws {
        let work = ControlledWork()
        var subscription: Subscription? = queue.join("a", work)
        let context = try await work.context()
        #expect(subscription?.isFirst == true)
        subscription = nil
        #expect(context.isCancelled)
    }

    @Test
    func `Work that owns a subscription can be dropped`() async throws {
        let queue = makeQueue(1)
        let work = ControlledWork()
        let running = queue.join("a", work)
        func joinWithOwner() -> Subscription {
            let owner = Owner(queue.join("b", ControlledWork()))
            return queue.join("c") { _ in withExtendedLifetime(owner) { .success(()) } }
        }
        let outer = joinWithOwner()
        #expect(queue.snapshot().count(.queued) == 2)
        outer.cancel()
        #expect(queue.snapshot().count(.queued) == 0)
        work.finish()
        try await running.value()
    }

    @Test
    func `A stalled transfer gives its slot away and gets one back by priority`() async throws {
        let queue = makeQueue(1)
        let works = (0..<3).map { _ in ControlledWork() }
        let first = queue.join("a", works[0], priority: .high)
        let context = try await works[0].context()
        let second = queue.join("b", works[1])
        context.stall()
        context.stall()
        _ = try await works[1].context()
        #expect(queue.snapshot().count(.stalled) == 1)
        let third = queue.join("c", works[2], priority: .high)
        async let unstalled = code { try await context.unstall() }
        // It asks before there is a slot: otherwise the third would get it, and never give it back.
        while queue.snapshot().count(.resuming) == 0 { await Task.yield() }
        works[1].finish()
        #expect(await unstalled == nil)
        #expect(await code { try await context.unstall() } == nil)
        #expect(queue.snapshot().slotsInUse == 1)
        works[0].finish()
        works[2].finish()
        for subscription in [first, second, third] { try await subscription.value() }
    }

    @Test
    func `A stalled transfer that is cancelled does not wait for a slot`() async throws {
        let queue = makeQueue(1)
        let (work, other) = (ControlledWork(), ControlledWork())
        let first = queue.join("a", work)
        let context = try await work.context()
        context.stall()
        let second = queue.join("b", other)
        _ = try await other.context()
        async let unstalled = code { try await context.unstall() }
        first.cancel()
        #expect(await unstalled == .cancelled)
        #expect(await code { try await context.unstall() } == .cancelled)
        other.finish()
        try await second.value()
    }

    @Test
    func `Suspended, nothing new starts and what runs goes on`() async throws {
        let (running, waiting) = (ControlledWork(), ControlledWork())
        let first = queue.join("a", running)
        _ = try await running.context()
        queue.suspend()
        let second = queue.join("b", waiting)
        running.finish()
        try await first.value()
        #expect(queue.snapshot().isSuspended)
        #expect(queue.snapshot().count(.queued) == 1)
        #expect(!waiting.hasStarted)
        queue.resume()
        _ = try await waiting.context()
        waiting.finish()
        try await second.value()
    }

    @Test
    func `Those of one resource or of all can be cancelled, and the queue goes on`() async throws {
        let works = (0..<3).map { _ in ControlledWork() }
        let subscriptions = works.enumerated().map { queue.join("\($0)", $1) }
        let resource = queue.resource("0")
        resource.didCancelAll(resource.cancelAll())
        #expect(await code { try await subscriptions[0].value() } == .cancelled)
        queue.cancelAll()
        for subscription in subscriptions {
            #expect(await code { try await subscription.value() } == .cancelled)
        }
        let work = ControlledWork()
        let later = queue.join("0", work)
        work.finish()
        try await later.value()
    }

    @Test
    func `A shutdown waits for the work and refuses joiners`() async throws {
        let work = ControlledWork()
        let subscription = queue.join("a", work)
        _ = try await work.context()
        await queue.shutdown()
        #expect(work.returned.outcome != nil)
        #expect(await code { try await subscription.value() } == .shutDown)
        let late = queue.join("a", ControlledWork())
        #expect(late.transfer == nil)
        #expect(await code { try await late.value() } == .shutDown)
        await queue.shutdown()
    }

    @Test
    func `A shutdown of a queue whose transfers all wait has drained`() async throws {
        queue.suspend()
        let work = ControlledWork()
        let subscription = queue.join("a", work)
        await queue.shutdown()
        #expect(await code { try await subscription.value() } == .shutDown)
        #expect(!work.hasStarted && queue.snapshot().transfers.isEmpty)
    }

    @Test
    func `Where all are ended, none that waits gets the slot of one that has ended`() async throws {
        let queue = makeQueue(1)
        let works = (0..<9).map { _ in ControlledWork() }
        let subscriptions = works.enumerated().map { queue.join("\($0)", $1) }
        _ = try await works[0].context()
        queue.cancelAll()
        for subscription in subscriptions {
            #expect(await code { try await subscription.value() } == .cancelled)
        }
        while !queue.snapshot().transfers.isEmpty { await Task.yield() }
        #expect(works.map(\.hasStarted) == [true] + Array(repeating: false, count: 8))
    }

    /// Something that keeps a subscription alive.
    private final class Owner: Sendable {
        let subscription: Subscription

        init(_ subscription: Subscription) {
            self.subscription = subscription
        }
    }
}

/// The threads on which a test has been, in order.
private final class SeenThreads: Sendable {
    private let state = Guarded<[UInt64]>([])

    var threads: [UInt64] { state.withLock { $0 } }

    func note() { state.withLock { $0.append(ThreadNumber.current) } }
}
