import HTTPCaching
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCache

@Suite("Alarms", .tags(.realTime), .timeLimit(.minutes(10)))
struct AlarmTests {
    /// What has rung, in order.
    private final class Rings: Sendable {
        let names = Guarded<[String]>([])
        let signal = ProgressSignal()

        func ring(_ name: String) -> @Sendable () -> Void {
            {
                self.names.withLock { $0.append(name) }
                self.signal.bump()
            }
        }

        func wait(for count: Int) async -> [String] {
            while true {
                let seen = signal.version
                let names = names.withLock { $0 }
                guard names.count < count else { return names }
                await signal.wait(after: seen)
            }
        }
    }

    @Test("Each rings at its time, in whatever order they were set")
    func order() async {
        let (time, rings) = (ManualTimeSource(), Rings())
        let alarms = SharedAlarms(time)
        _ = alarms.set(after: .seconds(30), rings.ring("late"))
        await time.waitForSleepers(1)
        _ = alarms.set(after: .seconds(2), rings.ring("early"))
        // A task that wakes earlier takes over from the one that sleeps.
        await time.waitForSleeper(within: .seconds(2))
        time.advance(by: .seconds(2))
        #expect(await rings.wait(for: 1) == ["early"])
        await time.waitForSleeper(within: .seconds(28))
        time.advance(by: .seconds(27))
        #expect(rings.names.withLock { $0 } == ["early"])
        time.advance(by: .seconds(1))
        #expect(await rings.wait(for: 2) == ["early", "late"])
    }

    @Test("What was called off does not ring, and the next is set without another task")
    func cancelled() async {
        let (time, rings) = (ManualTimeSource(), Rings())
        let alarms = SharedAlarms(time)
        let first = alarms.set(after: .seconds(30), rings.ring("called off"))
        await time.waitForSleepers(1)
        alarms.cancel(first)
        for _ in 0..<1000 { alarms.cancel(alarms.set(after: .seconds(30), rings.ring("other"))) }
        time.advance(by: .seconds(10))
        _ = alarms.set(after: .seconds(30), rings.ring("set"))
        #expect(time.sleeperCount == 1)
        time.advance(by: .seconds(20))
        await time.waitForSleepers(1)
        time.advance(by: .seconds(10))
        #expect(await rings.wait(for: 1) == ["set"])
        #expect(time.sleeperCount == 0)
    }

    @Test("Short alarms leave no task behind while a long one is set")
    func shortOnes() async {
        let (time, rings) = (ManualTimeSource(), Rings())
        let alarms = SharedAlarms(time)
        _ = alarms.set(after: .seconds(3600), rings.ring("long"))
        await time.waitForSleeper(within: .seconds(3600))
        for round in 1...20 {
            _ = alarms.set(after: .seconds(1), rings.ring("short"))
            await time.waitForSleeper(within: .seconds(1))
            time.advance(by: .seconds(1))
            #expect(await rings.wait(for: round).count == round)
            // The one that has rung sleeps for the long one, in place of the one before.
            await time.waitForSleeper(within: .seconds(3600))
        }
        while time.sleeperCount > 1 { await Task.yield() }
        // As far as it is set, and no further.
        time.advance(by: .seconds(3580))
        #expect(await rings.wait(for: 21).last == "long")
    }

    @Test("After all have rung or were called off, a new one rings")
    func again() async {
        let (time, rings) = (ManualTimeSource(), Rings())
        let alarms = SharedAlarms(time)
        for round in 1...3 {
            _ = alarms.set(after: .seconds(1), rings.ring("\(round)"))
            await time.waitForSleepers(1)
            time.advance(by: .seconds(1))
            #expect(await rings.wait(for: round).count == round)
        }
    }

    /// A clock that goes on before it wakes its sleeper, as that of a process that is stopped does.
    private final class StoppedTimeSource: TimeSource {
        let clock: ManualTimeSource
        private let stop: Guarded<Duration>

        init(_ clock: ManualTimeSource, stop: Duration) {
            self.clock = clock
            self.stop = Guarded(stop)
        }

        func wallTime() -> WallTime { clock.wallTime() }
        func monotonicTime() -> MonotonicTime { clock.monotonicTime() }

        func sleep(for duration: Duration) async throws {
            try await clock.sleep(for: duration)
            let stopped = stop.withLock { stop in
                defer { stop = .zero }
                return stop
            }
            clock.advance(by: stopped)
        }
    }

    @Test("After a stop an alarm waits a second more: what it waits for may have come unseen")
    func stopped() async {
        let (clock, rings) = (ManualTimeSource(), Rings())
        let time = StoppedTimeSource(clock, stop: .seconds(600))
        let alarms = SharedAlarms(time)
        _ = alarms.set(after: .seconds(30), rings.ring("silence"))
        let met = alarms.set(after: .seconds(40), rings.ring("called off"))
        _ = alarms.set(after: .seconds(700), rings.ring("later"))
        await clock.waitForSleepers(1)
        clock.advance(by: .seconds(30))
        await clock.waitForSleepers(1)
        #expect(rings.names.withLock { $0 }.isEmpty)
        alarms.cancel(met)
        clock.advance(by: .seconds(1))
        #expect(await rings.wait(for: 1) == ["silence"])
        await clock.waitForSleeper(within: .seconds(69))
        clock.advance(by: .seconds(69))
        #expect(await rings.wait(for: 2) == ["silence", "later"])
    }

    @Test("An alarm of a year or more is not set, and no task sleeps for it")
    func never() {
        let time = ManualTimeSource()
        time.alarm(after: .seconds(31_536_000)) { Issue.record("it rang") }.cancel()
        _ = time.alarm(after: .seconds(Int64.max)) { Issue.record("it rang") }
        #expect(time.sleeperCount == 0)
        time.advance(by: .seconds(40_000_000))
    }

    @Test("The machine's clock rings")
    func machine() async {
        await withCheckedContinuation { continuation in
            _ = SystemTimeSource().alarm(after: .milliseconds(1)) { continuation.resume() }
        }
    }

    @Test("A time source of a test has a task sleep for each, which wakes when it is called off")
    func manual() async {
        let (time, rings) = (ManualTimeSource(), Rings())
        let first = time.alarm(after: .seconds(1), rings.ring("called off"))
        _ = time.alarm(after: .seconds(2), rings.ring("second"))
        #expect(time.sleeperCount == 2, "each sleeps as soon as it is set")
        first.cancel()
        time.advance(by: .seconds(2))
        #expect(await rings.wait(for: 1) == ["second"])
    }
}
