import Testing

@testable import TieredCache

/// A playing request gets a slot at once, also where background transfers hold all of them.
@Suite("Request queue, preempting", .timeLimit(.minutes(10)))
struct RequestQueuePreemptingTests {
    private let queue = QueueBench(
        limits: .init(maximumDownloads: 2, maximumPerHost: 2),
        executor: IOExecutor(threads: 2)
    )

    @Test
    func `The least urgent and youngest is paused, and goes on when there is a slot`() async throws
    {
        let works = (0..<3).map { _ in ControlledWork() }
        let prefetches = [
            queue.join("a", works[0], priority: .prefetch),
            queue.join("b", works[1], priority: .prefetch),
        ]
        _ = try await works[0].context()
        let paused = try await works[1].context()
        let player = queue.join("c", works[2], priority: .playing)
        _ = try await works[2].context()
        #expect(queue.snapshot().count(.running) == 2)
        #expect(queue.snapshot().transfers[1].state == .stalled)
        async let resuming: Void = paused.unstall()
        works[2].finish()
        try await player.value()
        try await resuming
        #expect(queue.snapshot().count(.running) == 2)
        for work in works { work.finish() }
        for prefetch in prefetches { try await prefetch.value() }
    }

    @Test(arguments: [RequestPriority.normal, .high, .playing])
    func `What a client waits for keeps its slot`(priority: RequestPriority) async throws {
        let works = (0..<3).map { _ in ControlledWork() }
        let running = works[..<2].enumerated().map {
            queue.join("\($0)", $1, priority: priority)
        }
        for work in works[..<2] { _ = try await work.context() }
        let player = queue.join("c", works[2], priority: .playing)
        #expect(queue.snapshot().count(.running) == 2 && !works[2].hasStarted)
        for work in works { work.finish() }
        for subscription in running + [player] { try await subscription.value() }
    }

    @Test
    func `A prefetch that waits starts when a player asks for it`() async throws {
        let works = (0..<3).map { _ in ControlledWork() }
        let prefetches = works.enumerated().map {
            queue.join("\($0)", $1, priority: .prefetch)
        }
        for work in works[..<2] { _ = try await work.context() }
        #expect(!works[2].hasStarted)
        let player = queue.join("2", ControlledWork(), priority: .playing)
        _ = try await works[2].context()
        #expect(player.transfer == prefetches[2].transfer)
        for work in works { work.finish() }
        for subscription in prefetches + [player] { try await subscription.value() }
    }

    @Test
    func `A request that becomes urgent while it waits gets a slot`() async throws {
        let works = (0..<3).map { _ in ControlledWork() }
        let subscriptions = works.enumerated().map {
            queue.join("\($0)", $1, priority: $0 == 2 ? .prefetch : .background)
        }
        for work in works[..<2] { _ = try await work.context() }
        subscriptions[2].priority = .playing
        _ = try await works[2].context()
        for work in works { work.finish() }
        for subscription in subscriptions { try await subscription.value() }
    }

    @Test
    func `No transfer is paused twice, nor for a host that is full of others`() throws {
        var bench = Bench(
            machine: .init(limits: .init(maximumDownloads: 2, maximumPerHost: 1))
        )
        let loser = try bench.enter("one", .prefetch).transfer
        let second = try bench.enter("two", .normal).transfer
        let other = try bench.enter("two")
        #expect(other.actions.isEmpty)
        let player = try bench.enter("one")
        #expect(player.actions == [.pause(loser), .start(player.transfer)])
        #expect(bench.machine.didUnstall(loser).isEmpty)
        #expect(bench.machine.didFinish(player.transfer).last == .grant(loser))
        let late = try bench.enter("one")
        #expect(late.actions.isEmpty)
        #expect(bench.machine.didFinish(second).last == .start(other.transfer))
    }

    /// A machine, and transfers that enter it.
    private struct Bench {
        var machine: RequestQueueStateMachine
        var last: UInt64 = 0

        mutating func enter(
            _ host: String,
            _ priority: RequestPriority = .playing
        ) throws -> (transfer: TransferID, actions: [RequestQueueStateMachine.Action]) {
            last += 1
            let id = TransferID(number: last)
            let actions = machine.enter(id, host: host, resource: .same, priority: priority)
            return (id, try #require(actions))
        }
    }

    @Test
    func `What plays gets the slot of another host's request that has no first byte`() throws {
        var bench = Bench(
            machine: .init(limits: .init(maximumDownloads: 2, maximumPerHost: 2, maximumYielded: 1))
        )
        let answered = try bench.enter("one").transfer
        bench.machine.didRespond(answered)
        let silent = try bench.enter("one").transfer
        let urgent = try bench.enter("two", .high)
        #expect(urgent.actions.isEmpty)
        let player = try bench.enter("two")
        #expect(player.actions == [.pause(silent), .start(player.transfer)])
        // It still counts as one of its host's, and no more are leased than the limit says.
        let same = try bench.enter("one")
        let other = try bench.enter("three")
        #expect(same.actions.isEmpty && other.actions.isEmpty)
        bench.machine.didRespond(player.transfer)
        // The first byte has come: it waits for a slot, before those that have not started.
        #expect(bench.machine.didUnstall(silent).isEmpty)
        #expect(bench.machine.didFinish(answered).last == .grant(silent))
    }

    @Test(arguments: [true, false])
    func `A request whose slot was yielded ends without giving back what it has not`(
        isCancelled: Bool
    ) throws {
        var bench = Bench(machine: .init(limits: .init(maximumDownloads: 1, maximumPerHost: 1)))
        let silent = try bench.enter("one").transfer
        let player = try bench.enter("two")
        #expect(player.actions == [.pause(silent), .start(player.transfer)])
        let waiting = try bench.enter("one", .high)
        if isCancelled {
            #expect(bench.machine.cancel(silent).last == .cancel(silent))
        }
        _ = bench.machine.didFinish(silent)
        #expect(bench.machine.slotsInUse == 1)
        #expect(bench.machine.didFinish(player.transfer).last == .start(waiting.transfer))
        _ = bench.machine.didFinish(waiting.transfer)
        #expect(bench.machine.slotsInUse == 0 && bench.machine.slotsYielded == 0)
        #expect(bench.machine.placesInUseByHost.isEmpty)
    }
}
