import TieredCache

/// The files of which players have received bytes, stored or not.
///
/// A player that has part of a file takes an error response for further bytes of it. Kept in memory
/// only, for the newest few thousand files: the disk tier knows about stored ones.
final class AnsweredItems: Sendable {
    /// Two generations: inserting an item again moves it to the newer one.
    private struct State {
        var recent: Set<PlayingSessions.Item> = []
        var before: Set<PlayingSessions.Item> = []
    }

    /// The fewest items that are kept.
    static let capacity = 2048

    private let state = Guarded(State())

    /// Records that a player receives bytes of the item.
    func insert(_ item: PlayingSessions.Item) {
        state.withLock { state in
            guard state.recent.insert(item).inserted, state.recent.count > Self.capacity else {
                return
            }
            (state.before, state.recent) = (state.recent, [item])
        }
    }

    /// Whether a player has received bytes of the item.
    func contains(_ item: PlayingSessions.Item) -> Bool {
        state.withLock { $0.recent.contains(item) || $0.before.contains(item) }
    }
}
