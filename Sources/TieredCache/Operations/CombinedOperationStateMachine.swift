/// Decides the next step of a combined operation: lookup, then download if necessary.
///
/// Performs no effect. The first end wins: a cancellation before the start, during the lookup or
/// during the download is final, even if the work still succeeds.
struct CombinedOperationStateMachine {
    private enum State {
        case created  // → lookingUp, finished
        case lookingUp  // → downloading, finished
        case downloading  // → finished
        case finished
    }

    /// The next step of the runner.
    enum Action: Equatable {
        /// Run the lookup.
        case lookUp
        /// Run the download with the remainder of the lookup.
        case download
        /// Complete with the result of the work.
        case complete
        /// Complete with `cancelled`, and cancel the work if it runs.
        case completeCancelled
        /// Do nothing: the operation has ended, or the step was taken before.
        case ignore
    }

    private var state = State.created

    var isFinished: Bool { state == .finished }

    mutating func didStart() -> Action {
        guard state == .created else { return .ignore }
        state = .lookingUp
        return .lookUp
    }

    /// The lookup has returned; `isFinal` if it was complete, or failed.
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

    /// The download has returned or failed.
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
