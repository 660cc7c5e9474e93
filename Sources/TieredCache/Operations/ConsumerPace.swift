/// Whether a consumer takes bytes so slowly that its transfer had better give its slot to others
/// while it waits (invariant 12).
///
/// One that stops is noticed by its silence. This is about one that takes a little every now and
/// then: over some seconds, the transfer has waited for it longer than not.
struct ConsumerPace {
    /// Over how long the waits are added up.
    static let window = Duration.seconds(2)

    /// Whether it was slow in the last window.
    private(set) var isSlow = false
    private var windowStart: MonotonicTime
    private var waited = Duration.zero

    init(now: MonotonicTime) {
        windowStart = now
    }

    /// The transfer had a chunk that the consumer left no room for.
    mutating func didWait(from start: MonotonicTime, to end: MonotonicTime) {
        waited += start.duration(to: end)
        let elapsed = windowStart.duration(to: end)
        guard elapsed >= Self.window else { return }
        isSlow = waited * 2 >= elapsed
        (windowStart, waited) = (end, .zero)
    }

    /// The transfer has waited for its slot, which says nothing about the consumer.
    mutating func didWaitForSlot(from start: MonotonicTime, to end: MonotonicTime) {
        windowStart = windowStart.advanced(by: start.duration(to: end))
    }
}
