/// What is known of one flight's answer, for those who have a share in it; lives as long as they do.
///
/// May be used from any thread. A change is told by the fill's signal.
final class FlightReport: Sendable {
    private struct State {
        var answer: Fill.Answer?
        var bypass: Fill.Bypass?
    }

    private let state = Guarded(State())

    /// What the flight's head meant; nil before it has arrived.
    var answer: Fill.Answer? { state.withLock { $0.answer } }

    /// Where the flight's bytes go since the disk refused; nil while it stores.
    var bypass: Fill.Bypass? { state.withLock { $0.bypass } }

    /// A head has arrived: the first, or one that takes the place of what was known.
    func didAnswer(_ answer: Fill.Answer) { become(State(answer: answer)) }

    func didBypassDisk(_ bypass: Fill.Bypass) {
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
