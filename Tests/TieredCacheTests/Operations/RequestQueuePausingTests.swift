import Testing
import TieredCacheTesting

@testable import TieredCache

/// Transfers that pause where their readers want no more for now.
@Suite("Request queue, pausing", .timeLimit(.minutes(1)))
struct RequestQueuePausingTests {
    private func makeMachine() -> RequestQueueStateMachine {
        RequestQueueStateMachine(limits: .init(maximumDownloads: 1, maximumPerHost: 9))
    }

    private func join(
        _ machine: inout RequestQueueStateMachine,
        _ name: String,
        horizon: Int64
    ) throws -> TransferID {
        let join = machine.join(
            TransferGroup(key: CacheKey(explicit: name), selector: ""),
            wanting: 0,
            coverage: 0..<1 << 30,
            host: "host",
            priority: .normal,
            horizon: horizon
        )
        return try #require(join.transfer)
    }

    @Test("one that lingers ends with the block that it is in, or with the last one")
    func lingering() throws {
        for (position, end) in [(65_536, 65_536), (65_537, 131_072), (131_071, 131_072)] {
            var machine = makeMachine()
            let id = try join(&machine, "a", horizon: 1000)
            machine.didAdvance(id, to: Int64(position))
            machine.linger(id, for: 1 << 20)
            #expect(machine.transfers[id]?.horizon == Int64(end))
            machine.didAdvance(id, to: Int64(end))
            #expect(!machine.isWanted(id))
        }
    }

    @Test("what compares a body, or whose readers have stopped, takes no place of one that pauses")
    func places() throws {
        var machine = makeMachine()
        for name in ["a", "b"] {
            let id = try join(&machine, name, horizon: .max)
            _ = machine.didStall(id)
        }
        #expect(machine.mayKeepConnection)
        let paused = try join(&machine, "c", horizon: 0)
        let isPaused = machine.stallIfRoom(paused) != nil
        #expect(isPaused && !machine.mayKeepConnection)
        let other = try join(&machine, "d", horizon: 0)
        let isPausedToo = machine.stallIfRoom(other) != nil
        #expect(!isPausedToo)
        _ = machine.didFinish(other)
        // It goes on, and another one may pause.
        _ = machine.didUnstall(paused)
        #expect(machine.transfers[paused]?.state == .running && machine.mayKeepConnection)
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
