import TieredCache

/// Which files players have been given bytes of, also such as are not stored.
///
/// Whoever has part of a file takes an error for more of it. In memory alone, for the newest few
/// thousand: what is on disk is known without.
final class AnsweredItems: Sendable {
    /// Two sets that take turns: an item that is noted again is one of the newest again.
    private struct State {
        var recent: Set<PlayingSessions.Item> = []
        var before: Set<PlayingSessions.Item> = []
    }

    /// How many are kept at least.
    static let capacity = 2048

    private let state = Guarded(State())

    /// Notes that somebody is given bytes of it.
    func insert(_ item: PlayingSessions.Item) {
        state.withLock { state in
            guard state.recent.insert(item).inserted, state.recent.count > Self.capacity else {
                return
            }
            (state.before, state.recent) = (state.recent, [item])
        }
    }

    /// Whether somebody was given bytes of it.
    func contains(_ item: PlayingSessions.Item) -> Bool {
        state.withLock { $0.recent.contains(item) || $0.before.contains(item) }
    }
}
