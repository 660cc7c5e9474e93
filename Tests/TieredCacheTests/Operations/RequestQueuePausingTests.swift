import Testing
import TieredCacheTesting

@testable import TieredCache

/// Transfers that pause where their readers want no more for now.
@Suite("Request queue, pausing", .timeLimit(.minutes(1)))
struct RequestQueuePausingTests {
    @Test("what compares a body, or whose readers have stopped, takes no place of one that pauses")
    func places() throws {
        var machine = RequestQueueStateMachine(
            limits: .init(maximumDownloads: 1, maximumPerHost: 9)
        )
        let ids = (1...4).map { TransferID(number: $0) }
        func enter(_ id: TransferID) {
            #expect(
                machine.enter(id, host: "host", resource: .same, priority: .normal) == [.start(id)]
            )
        }
        for id in ids[..<2] {
            enter(id)
            _ = machine.didStall(id)
        }
        #expect(machine.mayKeepConnection)
        enter(ids[2])
        let isPaused = machine.stallIfRoom(ids[2]) != nil
        #expect(isPaused && !machine.mayKeepConnection)
        enter(ids[3])
        let isPausedToo = machine.stallIfRoom(ids[3]) != nil
        #expect(!isPausedToo)
        _ = machine.didFinish(ids[3])
        // It goes on, and another one may pause.
        _ = machine.didUnstall(ids[2])
        #expect(machine.transfers[ids[2]]?.state == .running && machine.mayKeepConnection)
    }

    @Test("one is not behind another that waits for a slot")
    func behindQueued() async throws {
        let queue = QueueBench(limits: .init(maximumDownloads: 1, maximumPerHost: 9))
        let (work, other) = (ControlledWork(), ControlledWork())
        let first = queue.join("a", work, coverage: 0..<1 << 30)
        let context = try await work.context()
        let second = queue.join(
            "a",
            at: 1 << 20,
            coverage: 1 << 20..<2 << 20,
            within: 1000
        ) { await other.run($0) }
        #expect(second.isFirst)
        context.update { $0.didAdvance(to: 900_000) }
        #expect(!context.shared.isBehindAnother(context.id, before: 1 << 20))
        context.stall()
        _ = try await other.context()
        #expect(context.shared.isBehindAnother(context.id, before: 1 << 20))
        withExtendedLifetime((first, second)) {}
        queue.cancelAll()
    }

    @Test("a read wakes a transfer that has paused for want of readers, and no other")
    func wakes() async throws {
        let (queue, time) = (QueueBench(), ManualTimeSource())
        for pause in [ResourceState.Pause.atHorizon, .forReaders] {
            let (shared, work) = (queue.resource("\(pause)"), ControlledWork())
            let subscription = queue.join("\(pause)", coverage: 0..<1 << 30, horizon: 5 << 20) {
                await work.run($0)
            }
            let context = try await work.context()
            let reader = shared.enter(at: 0, of: context.id, now: time.monotonicTime())
            context.update { $0.didAdvance(to: 5 << 20) }
            time.advance(by: ResourceState.silenceLimit)
            let waiting = Task { await shared.pause(context.id, pause, by: time) }
            while shared.state.withLock({ $0.resource.paused.isEmpty }) { await Task.yield() }
            let seen = shared.signal.version
            shared.didRead(reader, to: 1, now: time.monotonicTime())
            #expect((shared.signal.version != seen) == (pause == .forReaders))
            #expect(subscription.extend(for: 5 << 20..<6 << 20))
            await waiting.value
        }
        queue.cancelAll()
    }
}
