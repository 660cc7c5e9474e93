/// Estimates the latency and rate of the path to an origin, as a waiting reader sees them.
///
/// Requests for a quarter of the bytes read in a row keep a short path busy. On a long path each of
/// them costs a round trip without bytes: requesting the product of latency and rate is then worth
/// its cost, because a direct connection would have as much in flight. The minimum latency of
/// several waits counts, so that a busy machine does not look like a long path.
struct PathEstimate {
    /// The number of waits below which the estimate is not used.
    static let minimumWaits = 3
    /// The latency from which a path counts as long, in seconds.
    static let minimumLatency = 0.03

    /// The length of a run, in bytes, from which a consumer that seeks gets more read-ahead than a
    /// quarter of it, so that it costs at most 1.3 times what it reads.
    static let provenRun: Int64 = 2 << 20

    /// The maximum number of requests that are tracked.
    ///
    /// A request is only forgotten when its bytes are read, which may never happen.
    private static let maximumRequests = 8

    private struct Request {
        let range: Range<Int64>
        let began: MonotonicTime
        /// When the first awaited bytes arrived, and their end.
        var first: (at: MonotonicTime, end: Int64)?
    }

    private var requests: [Request] = []
    /// The offset at which the consumer waits.
    private var awaited: Int64?
    private var waits = 0
    /// The minimum seen, in seconds.
    private var latency = Double.infinity
    /// The maximum seen, in bytes per second; nil if all bytes came at once each time.
    private var rate: Double?

    /// These bytes are requested now.
    mutating func didAsk(for range: Range<Int64>, now: MonotonicTime) {
        if requests.count == Self.maximumRequests { requests.removeFirst() }
        requests.append(Request(range: range, began: now))
    }

    /// The consumer is idle until this byte arrives.
    mutating func didWait(for offset: Int64) {
        awaited = offset
    }

    /// The consumer has received bytes.
    mutating func didReceive(_ range: Range<Int64>, now: MonotonicTime) {
        let isAwaited = awaited == range.lowerBound
        awaited = nil
        let asked = requests.firstIndex { $0.range.contains(range.lowerBound) }
        guard let asked else { return }
        let request = requests[asked]
        if let first = request.first {
            let seconds = first.at.duration(to: now).totalSeconds
            if seconds > 0 {
                rate = max(rate ?? 0, Double(range.upperBound - first.end) / seconds)
            }
        } else if isAwaited, range.lowerBound == request.range.lowerBound {
            // Only bytes for which a read waited tell the latency: others may have arrived long ago.
            requests[asked].first = (now, range.upperBound)
            waits += 1
            latency = min(latency, request.began.duration(to: now).totalSeconds)
        }
        if range.upperBound >= request.range.upperBound { requests.remove(at: asked) }
    }

    /// Whether a round trip is long enough to fetch a useful amount.
    var isLong: Bool { waits >= Self.minimumWaits && latency >= Self.minimumLatency }

    /// The number of bytes that may be fetched ahead of a consumer that has read `run` bytes in a
    /// row.
    ///
    /// - Parameters:
    ///   - run: the length of the run in bytes.
    ///   - isSeek: whether the run began after the first byte of the representation.
    /// - Returns: the limit in bytes.
    func readAheadLimit(forRun run: Int64, isSeek: Bool) -> Int64 {
        guard isLong, !isSeek || run > Self.provenRun else { return run / 4 }
        // After a seek only the bytes read beyond the first quarters count.
        let most = isSeek ? run - Self.provenRun / 4 * 3 : run
        // Twice the product: one request is in flight while the next is sent.
        let product = rate.map { 2 * $0 * latency } ?? .infinity
        return max(run / 4, product < Double(most) ? Int64(product) : most)
    }
}
