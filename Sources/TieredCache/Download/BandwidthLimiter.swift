import Synchronization

/// The maximum rates of downloads, in total and per priority.
public struct BandwidthLimits: Hashable, Sendable {
    /// The rate of all downloads together in bytes per second; nil for no limit.
    public var total: Int64?
    /// The rates of all downloads of one priority in bytes per second; a missing priority has no
    /// limit of its own.
    public var byPriority: [RequestPriority: Int64]

    /// Creates limits; by default there are none.
    public init(total: Int64? = nil, byPriority: [RequestPriority: Int64] = [:]) {
        self.total = total
        self.byPriority = byPriority
    }
}

/// Delays downloads so that they respect ``BandwidthLimits``.
package final class BandwidthLimiter: Sendable {
    private struct State {
        var total: TokenBucket?
        var byPriority: [RequestPriority: TokenBucket]
        /// How often the limits were set.
        var changes = 0
    }

    private let state: Guarded<State>
    private let time: any TimeSource
    private let hasNone: Atomic<Bool>

    package init(_ limits: BandwidthLimits, time: any TimeSource) {
        self.time = time
        hasNone = Atomic(limits.areNone)
        state = Guarded(Self.state(limits, now: time.monotonicTime()))
    }

    /// Whether there are no limits; the hot path is then one comparison.
    var isUnlimited: Bool { hasNone.load(ordering: .relaxed) }

    /// Takes other limits from the next bytes on; who waits by the old ones waits a second more.
    package func set(_ limits: BandwidthLimits) {
        var new = Self.state(limits, now: time.monotonicTime())
        state.withLock { state in
            new.changes = state.changes + 1
            state = new
        }
        hasNone.store(limits.areNone, ordering: .relaxed)
    }

    private static func state(_ limits: BandwidthLimits, now: MonotonicTime) -> State {
        State(
            total: limits.total.map { TokenBucket(rate: $0, now: now) },
            byPriority: limits.byPriority.mapValues { TokenBucket(rate: $0, now: now) }
        )
    }

    /// Counts received bytes, and waits until more may be received.
    ///
    /// - Throws: `.cancelled`.
    func take(_ count: Int, priority: @autoclosure () -> RequestPriority) async throws(CacheError) {
        guard !isUnlimited else { return }
        let (now, priority) = (time.monotonicTime(), priority())
        let (wait, changes) = state.withLock { state in
            let waits = [
                state.total?.take(count, now: now),
                state.byPriority[priority]?.take(count, now: now),
            ]
            return (waits.compactMap { $0 }.max() ?? .zero, state.changes)
        }
        let end = now.advanced(by: wait)
        var left = wait
        while left > .zero, state.withLock({ $0.changes }) == changes {
            do {
                // A slow rate makes a wait of minutes for one chunk, in which it may be changed.
                try await time.sleep(for: min(left, .seconds(1)))
            } catch {
                throw .leftTransfer
            }
            left = time.monotonicTime().duration(to: end)
        }
    }
}

extension BandwidthLimits {
    fileprivate var areNone: Bool { total == nil && byPriority.isEmpty }
}
