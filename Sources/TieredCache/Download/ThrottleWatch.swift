/// Notices an origin that sends the beginning of an answer fast and the rest slowly, and whether
/// shorter requests help.
///
/// Some origins of films do that to keep clients from running ahead of a player. They know clients
/// by their requests, so each bounded request gets its fast beginning again.
///
/// | state | leaves it by |
/// | --- | --- |
/// | `watching` | a collapse of the rate: `trying`, and the rest is asked for in pieces |
/// | `trying` | enough bytes in pieces: `found`, or `watching` no more because they are no faster |
/// | `found`, `off` | nothing |
///
/// Reads no clock. Seconds in which the consumer rather than the origin was waited for say nothing.
struct ThrottleWatch: Sendable {
    /// What to do about it.
    enum Decision: Hashable, Sendable {
        /// Ask for the rest in pieces of this length.
        case bound(length: Int64)
        /// The pieces are fast: it is worth remembering.
        case helps(length: Int64)
        /// The pieces are no faster: ask for all of the rest again.
        case doesNotHelp
    }

    private enum State {
        case watching
        case trying(length: Int64, slowRate: Double)
        case off
    }

    /// A rate is taken over at least so long.
    static let window = Duration.seconds(1)
    /// The rate has collapsed when so many windows in a row were slow.
    static let slowWindows = 5
    /// A window is slow when it was so many times slower than the fastest one.
    static let collapse = 8.0
    /// Below this rate, in bytes per second, nothing was ever fast.
    static let leastFast = 262_144.0
    /// The shortest and the longest pieces that are asked for.
    static let lengths: ClosedRange<Int64> = 512 << 10...4 << 20
    /// Pieces help where they are so many times faster.
    static let gain = 2.0

    private var state: State
    private var start: MonotonicTime
    private var bytes: Int64 = 0
    private var waited = Duration.zero
    private var total: Int64 = 0
    private var fastest = 0.0
    /// How many bytes had come at the end of the last window that was not slow.
    private var fastBytes: Int64 = 0
    private var slow = 0

    init(isOn: Bool, now: MonotonicTime) {
        state = isOn ? .watching : .off
        start = now
    }

    /// Bytes came, after so long a wait for them.
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
            // Otherwise it was the consumer that took its time.
            guard self.waited * 2 >= elapsed else {
                slow = 0
                return nil
            }
            return didMeasure(rate)
        case .trying(let length, let slowRate):
            guard bytes >= 2 * length || elapsed >= Self.window * Self.slowWindows else {
                return nil
            }
            state = .off
            return rate >= slowRate * Self.gain ? .helps(length: length) : .doesNotHelp
        case .off:
            return nil
        }
    }

    /// Another answer begins: what one gave at its beginning says nothing about the next.
    mutating func didBeginAnswer(_ now: MonotonicTime) {
        guard case .watching = state else { return }
        (total, fastBytes, slow) = (0, 0, 0)
        begin(now)
    }

    /// The decision `bound` could not be followed.
    mutating func giveUp() { state = .off }

    private mutating func didMeasure(_ rate: Double) -> Decision? {
        guard rate * Self.collapse < fastest, fastest >= Self.leastFast else {
            fastest = max(fastest, rate)
            (fastBytes, slow) = (total, 0)
            return nil
        }
        slow += 1
        guard slow >= Self.slowWindows else { return nil }
        // Short enough to end before it gets slow.
        let length = min(max(fastBytes / 4 * 3, Self.lengths.lowerBound), Self.lengths.upperBound)
        state = .trying(length: length, slowRate: rate)
        return .bound(length: length)
    }

    private mutating func begin(_ now: MonotonicTime) {
        (start, bytes, waited) = (now, 0, .zero)
    }
}
