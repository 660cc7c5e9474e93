import HTTPCaching
import Testing
import TieredCache
import TieredCacheTesting

@Suite("ManualTimeSource", .timeLimit(.minutes(10)))
struct ManualTimeSourceTests {
    @Test
    func `Both times advance together and only when told`() {
        let time = ManualTimeSource(
            wall: WallTime(seconds: 100),
            monotonic: MonotonicTime(nanoseconds: 7)
        )
        #expect(time.wallTime() == WallTime(seconds: 100))
        #expect(time.monotonicTime() == MonotonicTime(nanoseconds: 7))
        time.advance(by: .seconds(3))
        #expect(time.wallTime() == WallTime(seconds: 103))
        #expect(time.monotonicTime() == MonotonicTime(nanoseconds: 3_000_000_007))
    }

    @Test
    func `The date can jump without the monotonic time`() {
        let time = ManualTimeSource()
        let before = time.monotonicTime()
        time.setWallTime(WallTime(seconds: 5))
        #expect(time.wallTime() == WallTime(seconds: 5))
        #expect(time.monotonicTime() == before)
    }

    @Test
    func `Sleepers wake at their deadlines in order`() async {
        let time = ManualTimeSource()
        let start = time.monotonicTime()
        let (woken, report) = AsyncStream.makeStream(of: Int.self)
        for (count, seconds) in [5, 1, 3].enumerated() {
            Task {
                try await time.sleep(for: .seconds(seconds))
                report.yield(seconds)
            }
            await time.waitForSleepers(count + 1)
        }
        var order = woken.makeAsyncIterator()
        time.advance(by: .milliseconds(999))
        #expect(time.sleeperCount == 3)
        for expected in [1, 3, 5] {
            time.advanceToNextDeadline()
            #expect(await order.next() == expected)
            #expect(start.duration(to: time.monotonicTime()) == .seconds(expected))
        }
        #expect(time.advanceToNextDeadline() == nil)
    }

    @Test
    func `One step wakes all that are due`() async throws {
        let time = ManualTimeSource()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for seconds in 1...10 {
                group.addTask { try await time.sleep(for: .seconds(seconds)) }
            }
            await time.waitForSleepers(10)
            time.advance(by: .seconds(4))
            #expect(time.sleeperCount == 6)
            time.advance(by: .seconds(6))
            #expect(time.sleeperCount == 0)
            try await group.waitForAll()
        }
    }

    @Test
    func `A duration that is not positive does not sleep`() async throws {
        let time = ManualTimeSource()
        try await time.sleep(for: .zero)
        try await time.sleep(for: .seconds(-1))
        #expect(time.sleeperCount == 0)
    }

    @Test
    func `A cancelled sleeper throws at once`() async {
        let time = ManualTimeSource()
        let task = Task { try await time.sleep(for: .seconds(1)) }
        await time.waitForSleepers()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(time.sleeperCount == 0)
    }

    @Test
    func `A cancel that comes first still wins`() async {
        let time = ManualTimeSource()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await time.sleep(for: .seconds(1))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(time.sleeperCount == 0)
    }
}
