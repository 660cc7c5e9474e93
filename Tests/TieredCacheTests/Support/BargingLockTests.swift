#if os(Linux)
import Dispatch
import Glibc
import Testing

@testable import TieredCache

/// The lock that a running thread may take before one that sleeps.
@Suite(.timeLimit(.minutes(1)))
struct BargingLockTests {
    private final class Shared: Sendable {
        let lock = BargingLock()
        let order = Guarded<[String]>([])

        var isReserved: Bool { lock.isReserved }

        func note(_ name: String) { order.withLock { $0.append(name) } }
    }

    @Test("A thread that has waited for long has the lock before the one that wants it again")
    func longWait() async {
        let shared = Shared()
        let isTaken = DispatchSemaphore(value: 0)
        let (first, second) = (Latch<Void>(), Latch<Void>())
        let started = [
            IOExecutor.startThread(named: "again") {
                shared.lock.lock()
                isTaken.signal()
                while !shared.isReserved { sched_yield() }
                shared.lock.unlock()
                shared.lock.lock()
                shared.note("again")
                shared.lock.unlock()
                first.complete(with: .success(()))
            },
            IOExecutor.startThread(named: "sleeper") {
                isTaken.wait()
                shared.lock.lock()
                shared.note("sleeper")
                shared.lock.unlock()
                second.complete(with: .success(()))
            },
        ]
        #expect(started == [true, true])
        _ = await first.wait()
        _ = await second.wait()
        #expect(shared.order.withLock { $0 } == ["sleeper", "again"])
        #expect(!shared.isReserved)
    }

    @Test("Of many that have waited for long each has its turn")
    func manyLongWaits() async {
        let shared = Shared()
        let isTaken = DispatchSemaphore(value: 0)
        let ends = (0..<17).map { _ in Latch<Void>() }
        let holder = IOExecutor.startThread(named: "holder") {
            shared.lock.lock()
            for _ in 1..<ends.count { isTaken.signal() }
            while !shared.isReserved { sched_yield() }
            shared.lock.unlock()
            ends[0].complete(with: .success(()))
        }
        #expect(holder)
        for end in ends.dropFirst() {
            let started = IOExecutor.startThread(named: "sleeper") {
                isTaken.wait()
                for _ in 0..<1000 {
                    shared.lock.lock()
                    shared.lock.unlock()
                }
                end.complete(with: .success(()))
            }
            #expect(started)
        }
        for end in ends { _ = await end.wait() }
        #expect(!shared.isReserved)
    }
}
#endif
