import Testing
import TieredCacheTesting

@testable import TieredCache

/// Transfers that pause where their readers want no more for now.
@Suite("Request queue, pausing", .timeLimit(.minutes(1)))
struct RequestQueuePausingTests {
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
