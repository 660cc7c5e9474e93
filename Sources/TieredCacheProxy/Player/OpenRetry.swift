import TieredCache

/// The retry schedule for opening a file, before its response begins.
struct OpenRetry {
    /// Why an attempt failed.
    enum Failure: Error, Hashable {
        case unavailable, timedOut
        /// A retry would end in the same way.
        case final

        init(_ error: CacheError) {
            self = error.code == .timedOut ? .timedOut : error.isFinal ? .final : .unavailable
        }

        /// The status code for the client.
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

    /// The time limit of the next attempt, at least 1 ms.
    ///
    /// - Parameter isKnown: whether a player has bytes of the file.
    /// - Returns: the time left for all attempts.
    func timeLeft(isKnown: Bool = false) -> Duration {
        max(.milliseconds(1), limit(isKnown) - elapsed)
    }

    private func limit(_ isKnown: Bool) -> Duration {
        isKnown ? max(settings.originTimeout, settings.stallTimeout) : settings.originTimeout
    }

    /// The pause before the next attempt; nil to give up.
    ///
    /// - Parameters:
    ///   - failure: how the last attempt failed.
    ///   - isKnown: whether a player has bytes of the file; the time limit is longer then.
    ///   - jitter: from 0 to 1; the random part of the upper half of the pause, so that players
    ///     that failed together do not retry together.
    /// - Returns: the pause: 0.25 s at first, doubled up to 4 s, reduced by jitter to no less than
    ///   half.
    mutating func delay(
        after failure: Failure,
        isKnown: Bool,
        jitter: Double = .random(in: 0...1)
    ) -> Duration? {
        let left = limit(isKnown) - elapsed
        // A known file is retried to the last moment: its player has no alternative.
        guard failure != .final, left > (isKnown ? .zero : pause) else { return nil }
        defer { pause = min(pause * 2, .seconds(4)) }
        return min(pause / 2 + pause / 2 * jitter, left)
    }
}
