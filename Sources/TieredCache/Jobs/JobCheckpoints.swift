/// Decides when the body of a job is synced, to survive a power failure: every 8 MiB, or two
/// seconds after the last time if bytes have arrived since.
///
/// By bytes and by time, not by chunk: a sync costs between 0.1 and 10 ms.
struct JobCheckpoints: Sendable {
    static let bytes: Int64 = 8 << 20
    static let interval = Duration.seconds(2)

    private var position: Int64 = 0
    private var time: MonotonicTime

    init(now: MonotonicTime) {
        time = now
    }

    /// - Returns: whether to sync now, which then counts as done.
    mutating func isDue(at position: Int64, now: MonotonicTime) -> Bool {
        let news = position - self.position
        guard news >= Self.bytes || (news > 0 && time.duration(to: now) >= Self.interval) else {
            return false
        }
        self.position = position
        time = now
        return true
    }
}
