/// The state of one transfer's response, for its subscribers; lives as long as they do.
///
/// May be used from any thread. ``SharedTransfers/signal`` is bumped after a change.
final class TransferReport: Sendable {
    private struct State {
        var outcome: SharedTransfers.Outcome?
        var bypass: SharedTransfers.Bypass?
    }

    private let state = Guarded(State())
    /// The observation of the transfer, which other requests join; nil without an observer.
    let observation: (any TransferObservation)?

    init(observation: (any TransferObservation)? = nil) {
        self.observation = observation
    }

    /// The consequence of the transfer's head; nil before it has arrived.
    var outcome: SharedTransfers.Outcome? { state.withLock { $0.outcome } }

    /// The delivery of the transfer's bytes after the disk refused some; nil while it stores.
    var bypass: SharedTransfers.Bypass? { state.withLock { $0.bypass } }

    /// Records a head: the first, or one that replaces it.
    func didReceive(_ outcome: SharedTransfers.Outcome) { become(State(outcome: outcome)) }

    func didBypassDisk(_ bypass: SharedTransfers.Bypass) {
        state.withLock { $0.bypass = bypass }
    }

    /// Replaces the state; the old one may own entries and windows, so it is released unlocked.
    private func become(_ next: State) {
        let before = state.withLock { state in
            defer { state = next }
            return state
        }
        withExtendedLifetime(before) {}
    }
}
