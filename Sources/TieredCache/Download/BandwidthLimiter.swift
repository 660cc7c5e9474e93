/// How fast downloads may be, together and per priority.
public struct BandwidthLimits: Hashable, Sendable {
    /// Bytes per second of all downloads together; nil for no limit.
    public var total: Int64?
    /// Bytes per second of all downloads of one priority; a priority that is missing has no limit
    /// of its own.
    public var byPriority: [RequestPriority: Int64]

    /// Creates limits; by default there are none.
    public init(total: Int64? = nil, byPriority: [RequestPriority: Int64] = [:]) {
        self.total = total
        self.byPriority = byPriority
    }
}

/// Holds downloads back to ``BandwidthLimits``.
final class BandwidthLimiter: Sendable {
    private struct State {
        var total: TokenBucket?
        var byPriority: [RequestPriority: TokenBucket]
    }

    private let state: Guarded<State>
    private let time: any TimeSource
    /// Without limits the hot path is one comparison.
    let isUnlimited: Bool

    init(_ limits: BandwidthLimits, time: any TimeSource) {
        let now = time.monotonicTime()
        self.time = time
        isUnlimited = limits.total == nil && limits.byPriority.isEmpty
        state = Guarded(
            State(
                total: limits.total.map { TokenBucket(rate: $0, now: now) },
                byPriority: limits.byPriority.mapValues { TokenBucket(rate: $0, now: now) }
            )
        )
    }

    /// Takes bytes that have arrived, and waits until more may come.
    ///
    /// - Throws: `.cancelled`.
    func take(_ count: Int, _ priority: @autoclosure () -> RequestPriority) async throws(CacheError)
    {
        guard !isUnlimited else { return }
        let (now, priority) = (time.monotonicTime(), priority())
        let wait = state.withLock { state in
            max(
                state.total?.take(count, now: now) ?? .zero,
                state.byPriority[priority]?.take(count, now: now) ?? .zero
            )
        }
        guard wait > .zero else { return }
        do {
            try await time.sleep(for: wait)
        } catch {
            throw .leftTransfer
        }
    }
}
