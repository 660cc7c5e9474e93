import HTTPCaching

@testable import TieredCache

/// Time that does not make anyone wait: a sleep moves it and returns, except a watchdog's.
struct InstantTime: TimeSource {
    private final class Box: Sendable { let now = Guarded(Int64(0)) }

    private let box = Box()
    /// Sleeps of at least this long never end by themselves; a watchdog's timeout is one.
    let longest: Duration

    init(longest: Duration = .seconds(30)) {
        self.longest = longest
    }

    func wallTime() -> WallTime { WallTime(seconds: 1_767_225_600) }

    func monotonicTime() -> MonotonicTime {
        MonotonicTime(nanoseconds: box.now.withLock { $0 })
    }

    func sleep(for duration: Duration) async throws {
        try Task.checkCancellation()
        guard duration >= longest else {
            box.now.withLock { $0 += duration.saturatedNanoseconds }
            return
        }
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        for await _ in stream {}
        continuation.finish()
        try Task.checkCancellation()
    }
}
