/// Decides what a combined operation does next: look up, then download if that did not answer.
///
/// Performs no effect. The first end wins: a cancel before the start, while looking up or while
/// downloading is final, whatever the work still brings.
struct CombinedOperationStateMachine {
    private enum State {
        case created  // → lookingUp, finished
        case lookingUp  // → downloading, finished
        case downloading  // → finished
        case finished
    }

    /// What the runner has to do.
    enum Action: Equatable {
        /// Run the lookup.
        case lookUp
        /// Run the download with what the lookup left over.
        case download
        /// Complete with what the work returned.
        case complete
        /// Complete with `cancelled`, and cancel the work if there is any.
        case completeCancelled
        /// It is too late, or it has been done.
        case ignore
    }

    private var state = State.created

    var isFinished: Bool { state == .finished }

    mutating func didStart() -> Action {
        guard state == .created else { return .ignore }
        state = .lookingUp
        return .lookUp
    }

    /// The lookup returned; `isFinal` if it answered in full, or failed.
    mutating func didLookUp(isFinal: Bool) -> Action {
        switch state {
        case .lookingUp:
            state = isFinal ? .finished : .downloading
            return isFinal ? .complete : .download
        case .finished:
            return .ignore
        case .created, .downloading:
            preconditionFailure("a lookup ended that was not running: \(state)")
        }
    }

    /// The download returned or failed.
    mutating func didDownload() -> Action {
        switch state {
        case .downloading:
            state = .finished
            return .complete
        case .finished:
            return .ignore
        case .created, .lookingUp:
            preconditionFailure("a download ended that was not running: \(state)")
        }
    }

    mutating func didCancel() -> Action {
        guard state != .finished else { return .ignore }
        state = .finished
        return .completeCancelled
    }
}
