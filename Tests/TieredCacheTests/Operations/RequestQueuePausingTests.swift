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
            #expect(machine.enter(id, host: "host", priority: .normal) == [.start(id)])
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
        let shared = SharedTransfers(
            group: TransferGroup(key: CacheKey(explicit: "a"), selector: "")
        ) {}
        let now = ManualTimeSource().monotonicTime()
        let transfer = TransferID(number: 1)
        let reader = shared.enter(at: 0, transfer: transfer, now: now)
        for isStopped in [false, true] {
            let mayGoOn = Guarded(false)
            let isWaiting = Latch<Void>()
            let waiting = Task {
                await shared.waitForReader(of: isStopped ? transfer : nil) {
                    isWaiting.complete(with: .success(()))
                    return !mayGoOn.withLock { $0 }
                }
            }
            _ = await isWaiting.wait()
            let seen = shared.signal.version
            shared.didAsk(reader, at: 1, now: now)
            shared.didAnswer(reader, now: now)
            #expect((shared.signal.version != seen) == isStopped)
            mayGoOn.withLock { $0 = true }
            shared.didExtend()
            await waiting.value
        }
    }
}
