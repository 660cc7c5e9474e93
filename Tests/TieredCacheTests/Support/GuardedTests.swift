import Dispatch
import FoundationEssentials
import Testing

@testable import TieredCache

/// The lock of a guarded value under many threads.
@Suite(.timeLimit(.minutes(5)))
struct GuardedTests {
    /// Threads that begin together; returns when all have ended.
    private func run(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
        let begin = DispatchSemaphore(value: 0)
        let ends = (0..<count).map { _ in Latch<Void>() }
        for number in 0..<count {
            let thread = IOExecutor.startThread(named: "guarded") {
                begin.wait()
                body(number)
                ends[number].complete(with: .success(()))
            }
            #expect(thread)
        }
        for _ in 0..<count { begin.signal() }
        for end in ends { _ = await end.wait() }
    }

    @Test("64 threads change a value in turn, and no change is lost")
    func exclusion() async {
        struct Counts {
            var first = 0
            var second = 0
            var differed = false
        }
        let counts = Guarded(Counts())
        await run(64) { _ in
            for _ in 0..<5000 {
                counts.withLock { counts in
                    if counts.first != counts.second { counts.differed = true }
                    counts.first += 1
                    counts.second = counts.first
                }
            }
        }
        let end = counts.withLock { $0 }
        #expect(end.first == 64 * 5000)
        #expect(!end.differed)
    }

    @Test("Threads that sleep until a long hold ends are all woken, one after the other")
    func sleepers() async {
        let count = Guarded(0)
        let isHeld = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        await run(9) { number in
            guard number > 0 else {
                return count.withLock { _ in
                    for _ in 1..<9 { isHeld.signal() }
                    // Until all others are about to take the lock.
                    for _ in 1..<9 { mayEnd.wait() }
                }
            }
            isHeld.wait()
            mayEnd.signal()
            count.withLock { $0 += 1 }
        }
        #expect(count.withLock { $0 } == 8)
    }

    @Test("A value is what the last thread left, which a throw does not change")
    func throwing() {
        struct Failure: Error {}
        let value = Guarded(1)
        #expect(throws: Failure.self) {
            try value.withLock { value throws(Failure) in
                value = 2
                throw Failure()
            }
        }
        #expect(value.withLock { $0 } == 2)
    }
}
