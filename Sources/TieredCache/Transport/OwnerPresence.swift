/// Whether the owner of the directory, which is asked in the place of an origin, is there.
///
/// The owner says so at once, by 102. A body has no place for that: while nothing comes, the owner
/// is asked for it at a connection of its own, after each ``patience``, and has as long to answer.
/// So what an origin takes is no silence of the owner. ``DownloadWatchdog`` has the clock.
///
/// States: `asked` ⇄ `there`, both → `silent`, which stays and ends the exchange.
package final class OwnerPresence: Sendable {
    private enum Presence {
        case asked, there, silent
    }

    private struct State {
        /// The request itself is the first question.
        var presence = Presence.asked
        var hasAnswered = false
    }

    /// How long to wait for a sign.
    let patience: Duration
    private let ask: @Sendable (OwnerPresence) -> Void
    private let state = Guarded(State())

    /// Creates one for an exchange that is about to begin.
    ///
    /// - Parameters:
    ///   - patience: how long to wait for a sign.
    ///   - ask: asks the owner, which leads to ``didAnswer()``.
    init(patience: Duration, ask: @escaping @Sendable (OwnerPresence) -> Void) {
        self.patience = patience
        self.ask = ask
    }

    /// Whether the owner has answered a question, at least the first.
    var hasAnswered: Bool { state.withLock { $0.hasAnswered } }
    /// Whether the exchange was given up because of the owner.
    var isSilent: Bool { state.withLock { $0.presence == .silent } }

    func didAnswer() {
        state.withLock { state in
            state.hasAnswered = true
            if state.presence == .asked { state.presence = .there }
        }
    }

    /// Nothing has come for ``patience``: asks again, unless the last question has no answer.
    ///
    /// - Returns: whether to wait on.
    func look() -> Bool {
        let asks = state.withLock { state in
            state.presence = state.presence == .there ? .asked : .silent
            return state.presence == .asked
        }
        if asks { ask(self) }
        return asks
    }

    /// The exchange has taken too long.
    func giveUp() {
        state.withLock { $0.presence = .silent }
    }

    /// What the failure of the exchange is to the download.
    ///
    /// - Parameters:
    ///   - error: the failure.
    ///   - end: what it means if the owner itself has ended the exchange.
    /// - Returns: the error for the download.
    func failure(_ error: TransportError, end: OwnerFailure = .noAnswer) -> TransportError {
        if isSilent { return .fromOwner("the owner of the directory is silent") }
        if error.kind == .cancelled || error.kind == .shutDown { return error }
        return .fromOwner("the owner of the directory broke off: \(error.description)", end)
    }
}
