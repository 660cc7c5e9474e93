import TieredCache

/// How long and how often a file is asked for before its answer begins.
struct OpenRetry {
    /// Why an attempt failed.
    enum Failure: Error, Hashable {
        case unavailable, timedOut

        /// The status that says so.
        var status: Int { self == .timedOut ? 504 : 502 }
    }

    private let settings: ProxySettings
    private let start: MonotonicTime
    private var pause: Duration = .milliseconds(250)

    init(_ settings: ProxySettings) {
        self.settings = settings
        start = settings.timeSource.monotonicTime()
    }

    private var elapsed: Duration {
        start.duration(to: settings.timeSource.monotonicTime())
    }

    /// How long the next attempt may take.
    ///
    /// - Parameter isKnown: whether the file has been answered before.
    /// - Returns: what is left of the time for all of them.
    func timeLeft(isKnown: Bool = false) -> Duration {
        max(.milliseconds(1), limit(isKnown) - elapsed)
    }

    private func limit(_ isKnown: Bool) -> Duration {
        isKnown ? max(settings.originTimeout, settings.stallTimeout) : settings.originTimeout
    }

    /// How long to wait before the next attempt; nil to give up.
    ///
    /// - Parameters:
    ///   - failure: what happened.
    ///   - isKnown: whether the file has been answered before; then there is more time.
    ///   - jitter: from 0 to 1; how much of the upper half of the pause is waited for, so that
    ///     players that failed together do not come back together.
    /// - Returns: the pause: of 0.25 s at first, doubled up to 4 s.
    mutating func delay(
        after failure: Failure,
        isKnown: Bool,
        jitter: Double = .random(in: 0...1)
    ) -> Duration? {
        let left = limit(isKnown) - elapsed
        // What is known is asked for to the last moment: its player has no other way.
        guard left > (isKnown ? .zero : pause) else { return nil }
        defer { pause = min(pause * 2, .seconds(4)) }
        return min(pause / 2 + pause / 2 * jitter, left)
    }
}
