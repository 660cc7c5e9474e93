/// The bytes that one run of a job has read.
struct JobProgress: Sendable {
    var position: Int64 = 0
    var rate: RateEstimator
    private var fromOrigin: Int64 = 0

    init(start: Int64, now: MonotonicTime) {
        position = start
        rate = RateEstimator(now: now)
    }

    /// - Returns: bytes from the origin since the last call.
    mutating func didReach(fromOrigin total: Int64, now: MonotonicTime) -> Int64 {
        defer { fromOrigin = total }
        let news = total - fromOrigin
        rate.didReceive(Int(clamping: news), now: now)
        return news
    }
}
