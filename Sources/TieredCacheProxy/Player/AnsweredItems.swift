import DequeModule
import TieredCache

/// Which files players have been given bytes of, also such as are not stored.
///
/// Whoever has part of a file takes an error for more of it. In memory alone, for the newest few
/// thousand: what is on disk is known without.
final class AnsweredItems: Sendable {
    private struct State {
        var items: Set<PlayingSessions.Item> = []
        var order = Deque<PlayingSessions.Item>()
    }

    static let capacity = 4096

    private let state = Guarded(State())

    /// Notes that somebody is given bytes of it.
    func insert(_ item: PlayingSessions.Item) {
        state.withLock { state in
            guard state.items.insert(item).inserted else { return }
            state.order.append(item)
            guard state.order.count > Self.capacity, let oldest = state.order.popFirst() else {
                return
            }
            state.items.remove(oldest)
        }
    }

    /// Whether somebody was given bytes of it.
    func contains(_ item: PlayingSessions.Item) -> Bool {
        state.withLock { $0.items.contains(item) }
    }
}
