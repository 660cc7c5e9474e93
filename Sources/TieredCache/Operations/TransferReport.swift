/// What is known of one transfer's answer, for those who have a share in it; lives as long as they
/// do.
///
/// May be used from any thread. A change is told by the fill's signal.
final class TransferReport: Sendable {
    private struct State {
        var answer: SharedTransfers.Outcome?
        var bypass: SharedTransfers.Bypass?
    }

    private let state = Guarded(State())

    /// What the transfer's head meant; nil before it has arrived.
    var answer: SharedTransfers.Outcome? { state.withLock { $0.answer } }

    /// Where the transfer's bytes go since the disk refused; nil while it stores.
    var bypass: SharedTransfers.Bypass? { state.withLock { $0.bypass } }

    /// A head has arrived: the first, or one that takes the place of what was known.
    func didAnswer(_ answer: SharedTransfers.Outcome) { become(State(answer: answer)) }

    func didBypassDisk(_ bypass: SharedTransfers.Bypass) {
        state.withLock { $0.bypass = bypass }
    }

    /// What was known may own entries and channels, so it is let go of outside the lock.
    private func become(_ next: State) {
        let before = state.withLock { state in
            defer { state = next }
            return state
        }
        withExtendedLifetime(before) {}
    }
}
