/// How long the way to an origin is, seen from a reader that waits for its bytes.
///
/// Requests of a quarter of what was read in a row keep a short way busy. On a long one each of
/// them costs a round trip in which nothing comes: what the way holds, latency by rate, is then
/// worth asking for, because a direct connection would have it on its way as well. The least
/// latency of several waits counts, so that a busy machine is not taken for a long way.
struct PathEstimate {
    /// Waits that must have been seen before anything is concluded from them.
    static let leastWaits = 3
    /// What lasts less than this is a short way, in seconds.
    static let leastLatency = 0.03

    /// What must have been read in a row before a consumer that seeks here and there is run ahead
    /// of by more than a quarter of it, so that it costs at most 1.3 of what it reads.
    static let provenRun: Int64 = 2 << 20

    /// More requests than these are not under way for one reader.
    private static let mostRequests = 8

    private struct Request {
        let range: Range<Int64>
        let began: MonotonicTime
        /// When the first bytes that were waited for came, and up to where they went.
        var first: (at: MonotonicTime, end: Int64)?
    }

    private var requests: [Request] = []
    /// Where the consumer waits.
    private var awaited: Int64?
    private var waits = 0
    /// The least seen, in seconds.
    private var latency = Double.infinity
    /// The highest seen, in bytes a second; nil where all came at once each time.
    private var rate: Double?

    /// These bytes are asked for now.
    mutating func didAsk(for range: Range<Int64>, now: MonotonicTime) {
        if requests.count == Self.mostRequests { requests.removeFirst() }
        requests.append(Request(range: range, began: now))
    }

    /// The consumer has nothing to do before this byte comes.
    mutating func didWait(for offset: Int64) {
        awaited = offset
    }

    /// The consumer has got bytes.
    mutating func didGet(_ range: Range<Int64>, now: MonotonicTime) {
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
            requests[asked].first = (now, range.upperBound)
            waits += 1
            latency = min(latency, request.began.duration(to: now).totalSeconds)
        }
        if range.upperBound >= request.range.upperBound { requests.remove(at: asked) }
    }

    /// Whether a round trip is time enough to fetch something worth having.
    var isLong: Bool { waits >= Self.leastWaits && latency >= Self.leastLatency }

    /// How far a consumer that has read `run` bytes in a row may be run ahead of.
    ///
    /// - Parameters:
    ///   - run: the bytes.
    ///   - isSeek: whether it began elsewhere than at the beginning.
    /// - Returns: the bytes.
    func trusted(ofRun run: Int64, isSeek: Bool) -> Int64 {
        guard isLong, !isSeek || run > Self.provenRun else { return run / 4 }
        // Of one that seeks, from a quarter on as much more as is read more.
        let most = isSeek ? run - Self.provenRun / 4 * 3 : run
        // Two of them: one is on its way while the next is asked for.
        let product = rate.map { 2 * $0 * latency } ?? .infinity
        return max(run / 4, product < Double(most) ? Int64(product) : most)
    }
}
