/// Whether a consumer reads so slowly that its transfer should release its slot while it waits
/// (invariant 12).
///
/// A consumer that stops is detected by its silence. This detects a consumer that reads a little
/// now and then: over a window, the transfer has waited for it at least half of the time.
struct ConsumerPace {
    /// The time over which waits are added up.
    static let window = Duration.seconds(2)

    /// Whether the consumer was slow in the last window.
    private(set) var isSlow = false
    private var windowStart: MonotonicTime
    private var waited = Duration.zero

    init(now: MonotonicTime) {
        windowStart = now
    }

    /// The transfer has waited with a chunk for which the consumer had left no space.
    mutating func didWait(from start: MonotonicTime, to end: MonotonicTime) {
        waited += start.duration(to: end)
        let elapsed = windowStart.duration(to: end)
        guard elapsed >= Self.window else { return }
        isSlow = waited * 2 >= elapsed
        (windowStart, waited) = (end, .zero)
    }

    /// The transfer has waited for its slot; that time says nothing about the consumer.
    mutating func didWaitForSlot(from start: MonotonicTime, to end: MonotonicTime) {
        windowStart = windowStart.advanced(by: start.duration(to: end))
    }
}
