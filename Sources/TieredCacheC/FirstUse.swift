import Dispatch
import TieredCache

/// Something that has to be done once, by whoever comes first; the others wait for it.
///
/// States: `notDone` → `doing` → `done`, or `notDone` again after a failure: then one of those that
/// wait tries it.
final class FirstUse: Sendable {
    private enum State {
        case notDone
        case doing(Milestone)
        case done
    }

    private enum Part {
        case nothing
        case wait(Milestone)
        case `do`(Milestone)
    }

    private let state = Guarded(State.notDone)

    /// Returns when it is done; blocks the calling thread until then.
    ///
    /// - Throws: what `body` throws to this caller.
    func ensure(_ body: () throws(Status) -> Void) throws(Status) {
        while true {
            switch part() {
            case .nothing: return
            case .wait(let milestone): milestone.wait(until: .distantFuture)
            case .do(let milestone):
                var after = State.notDone
                defer {
                    state.withLock { $0 = after }
                    milestone.reach()
                }
                try body()
                after = .done
                return
            }
        }
    }

    private func part() -> Part {
        state.withLock { state in
            switch state {
            case .notDone:
                let milestone = Milestone()
                state = .doing(milestone)
                return .do(milestone)
            case .doing(let milestone): return .wait(milestone)
            case .done: return .nothing
            }
        }
    }
}
