import Testing
import TieredCacheTesting

@testable import TieredCache

/// Transfers that pause where their readers want no more for now.
@Suite("Request queue, pausing", .timeLimit(.minutes(1)))
struct RequestQueuePausingTests {
    private func makeMachine() -> RequestQueueStateMachine {
        RequestQueueStateMachine(limits: .init(maximumDownloads: 1, maximumPerHost: 9))
    }

    private static func group(_ name: String) -> TransferGroup {
        TransferGroup(key: CacheKey(explicit: name), selector: "")
    }

    private func join(
        _ machine: inout RequestQueueStateMachine,
        _ name: String,
        coverage: Range<Int64> = 0..<1 << 30,
        horizon: Int64
    ) throws -> TransferID {
        let join = machine.join(
            Self.group(name),
            wanting: coverage.lowerBound,
            coverage: coverage,
            host: "host",
            priority: .normal,
            maximumDistance: 1000,
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

    @Test("one that lingers brings a whole last block, and a rest that is not worth a request")
    func lingeringEnd() throws {
        // The end of the transfer in blocks, where it is, and where it ends.
        let cases: [(blocks: Int64, position: Int64, end: Int64)] = [
            (100, 65_536, 9 * 65_536), (100, 65_537, 10 * 65_536), (100, 0, 8 * 65_536),
            (12, 0, 12 * 65_536), (13, 0, 8 * 65_536), (8, 65_536, 9 * 65_536),
        ]
        for (blocks, position, end) in cases {
            var machine = makeMachine()
            let id = try join(&machine, "a", coverage: 0..<blocks * 65_536, horizon: 1000)
            machine.didAdvance(id, to: position)
            machine.linger(id, for: 8 * 65_536)
            #expect(machine.transfers[id]?.lingeringEnd == end, "\(blocks), \(position)")
            machine.linger(id, for: .max)
            #expect(machine.transfers[id]?.lingeringEnd == .max)
        }
    }

    @Test("one is behind another that goes on within the stored bytes before it, and no other")
    func behind() throws {
        var machine = RequestQueueStateMachine()
        let first = try join(&machine, "a", horizon: .max)
        let second = try join(&machine, "a", coverage: 1 << 20..<2 << 20, horizon: .max)
        let other = try join(&machine, "b", coverage: 1 << 20..<2 << 20, horizon: .max)
        machine.didAdvance(first, to: 900_000)
        // It waits for its first byte at 1 MiB, to where all is stored.
        #expect(machine.isAhead(of: first, before: 1 << 20))
        #expect(!machine.isAhead(of: first, before: 1 << 20 - 1))
        machine.didAdvance(first, to: 1 << 20)
        #expect(!machine.isAhead(of: first, before: 1 << 20))
        #expect(!machine.isAhead(of: second, before: 1 << 20))
        machine.didAdvance(second, to: 1_200_000)
        #expect(machine.isAhead(of: first, before: 1_200_000))
        #expect(!machine.isAhead(of: second, before: 1_200_000))
        #expect(!machine.isAhead(of: other, before: 1_200_000))
        // It ends there, and brings nothing more.
        machine.didAdvance(second, to: 2 << 20)
        #expect(!machine.isAhead(of: first, before: 2 << 20))
    }

    @Test("one that is moved is joined by requests of its new group alone, until it has ended")
    func moved() throws {
        var machine = RequestQueueStateMachine()
        let id = try join(&machine, "a", horizon: .max)
        let (old, new) = (Self.group("a"), Self.group("b"))
        machine.move(id, to: new)
        #expect(machine.joinUnderWay(old, wanting: 0, priority: .normal) == nil)
        let joined = machine.joinUnderWay(new, wanting: 0, priority: .normal)
        #expect(joined?.transfer == id)
        _ = machine.cancel(id)
        machine.move(id, to: old)
        #expect(machine.joinUnderWay(old, wanting: 0, priority: .normal) == nil)
        _ = machine.didFinish(id)
        #expect(machine.groups.isEmpty && machine.transfers.isEmpty)
    }

    @Test("one is not behind another that waits for a slot")
    func behindQueued() throws {
        var machine = makeMachine()
        let first = try join(&machine, "a", horizon: .max)
        let second = try join(&machine, "a", coverage: 1 << 20..<2 << 20, horizon: .max)
        machine.didAdvance(first, to: 900_000)
        #expect(machine.transfers[second]?.state == .queued)
        #expect(!machine.isAhead(of: first, before: 1 << 20))
        _ = machine.didStall(first)
        #expect(machine.transfers[second]?.state == .running)
        #expect(machine.isAhead(of: first, before: 1 << 20))
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
