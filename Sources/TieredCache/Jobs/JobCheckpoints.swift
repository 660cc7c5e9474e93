/// Decides when a job that is to outlive a power cut is written through: every 8 MiB, or two
/// seconds after the last time if anything has arrived since.
///
/// By bytes and by time, not by chunk: a sync costs between a tenth of a millisecond and ten.
struct JobCheckpoints: Sendable {
    static let bytes: Int64 = 8 << 20
    static let interval = Duration.seconds(2)

    private var position: Int64 = 0
    private var time: MonotonicTime

    init(now: MonotonicTime) {
        time = now
    }

    /// - Returns: whether to write through now, which is taken as done.
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
