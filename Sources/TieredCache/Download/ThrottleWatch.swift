/// Detects an origin that sends the beginning of a response fast and the rest slowly, and whether
/// shorter requests help.
///
/// Some origins of videos do that to keep clients from running ahead of a player. They identify
/// clients by their requests, so each bounded request gets its fast beginning again.
///
/// | state | leaves it by |
/// | --- | --- |
/// | `watching` | a collapse of the rate: `trying`, and the rest is requested in pieces |
/// | `trying` | enough bytes in pieces: `off`, with the decision whether they are faster |
/// | `off` | nothing |
///
/// Reads no clock. Time spent waiting for the consumer does not count.
struct ThrottleWatch: Sendable {
    /// The consequence of a measurement.
    enum Decision: Hashable, Sendable {
        /// Request the rest in pieces of this length in bytes.
        case bound(length: Int64)
        /// The pieces are fast: remember the length.
        case helps(length: Int64)
        /// The pieces are no faster: request all of the rest again.
        case doesNotHelp
    }

    private enum State {
        case watching
        case trying(length: Int64, slowRate: Double)
        case off
    }

    /// The minimum time over which a rate is measured.
    static let window = Duration.seconds(1)
    /// The number of slow windows in a row that count as a collapse.
    static let slowWindows = 5
    /// The factor by which a slow window is slower than the fastest one.
    static let collapse = 8.0
    /// The minimum rate of the fastest window, in bytes per second.
    static let leastFast = 262_144.0
    /// The minimum and maximum length of the requested pieces, in bytes.
    static let lengths: ClosedRange<Int64> = 512 << 10...4 << 20
    /// The factor by which helpful pieces are faster.
    static let gain = 2.0

    private var state: State
    private var start: MonotonicTime
    private var bytes: Int64 = 0
    private var waited = Duration.zero
    private var total: Int64 = 0
    private var fastest = 0.0
    /// The number of bytes received by the end of the last window that was not slow.
    private var fastBytes: Int64 = 0
    private var slow = 0

    init(isOn: Bool, now: MonotonicTime) {
        state = isOn ? .watching : .off
        start = now
    }

    /// Bytes have arrived, after a wait for them.
    mutating func didReceive(_ count: Int, waited: Duration, now: MonotonicTime) -> Decision? {
        if case .off = state { return nil }
        bytes += Int64(count)
        total += Int64(count)
        self.waited += waited
        let elapsed = start.duration(to: now)
        guard elapsed >= Self.window else { return nil }
        let rate = Double(bytes) / elapsed.totalSeconds
        switch state {
        case .watching:
            defer { begin(now) }
            // Otherwise the consumer was slow.
            guard self.waited * 2 >= elapsed else {
                slow = 0
                return nil
            }
            return didMeasure(rate)
        case .trying(let length, let slowRate):
            // Otherwise the consumer was slow.
            guard self.waited * 2 >= elapsed else {
                begin(now)
                return nil
            }
            guard bytes >= 2 * length || elapsed >= Self.window * Self.slowWindows else {
                return nil
            }
            state = .off
            return rate >= slowRate * Self.gain ? .helps(length: length) : .doesNotHelp
        case .off:
            return nil
        }
    }

    /// Another response begins: its rate is independent of the last one's.
    mutating func didBeginResponse(_ now: MonotonicTime) {
        guard case .watching = state else { return }
        (total, fastBytes, slow) = (0, 0, 0)
        begin(now)
    }

    /// The decision `bound` could not be carried out.
    mutating func giveUp() { state = .off }

    private mutating func didMeasure(_ rate: Double) -> Decision? {
        guard rate * Self.collapse < fastest, fastest >= Self.leastFast else {
            fastest = max(fastest, rate)
            (fastBytes, slow) = (total, 0)
            return nil
        }
        slow += 1
        guard slow >= Self.slowWindows else { return nil }
        // Short enough to end before it becomes slow.
        let length = min(max(fastBytes / 4 * 3, Self.lengths.lowerBound), Self.lengths.upperBound)
        state = .trying(length: length, slowRate: rate)
        return .bound(length: length)
    }

    private mutating func begin(_ now: MonotonicTime) {
        (start, bytes, waited) = (now, 0, .zero)
    }
}
