/// Decides what becomes of a download job.
///
/// Performs no I/O and knows no request.
///
/// | input | legal in | leads to |
/// | --- | --- | --- |
/// | `didAsk` (submitted, resumed, continued) | all | `queued`, with a driver |
/// | `didBegin` | `queued`, `waitingForNetwork` | `running` |
/// | `didLoseNetwork` | `queued`, `running` | `waitingForNetwork` |
/// | `didPause` | all that is no end | `paused`, without a driver |
/// | `didCancel` | all but `finished` | `cancelled`, without a driver |
/// | `didEnd` | any with a driver | `finished`, `failed`, or `queued` where it was interrupted |
/// | `didFailElsewhere` | `queued` without a driver | `failed` |
/// | `didAcknowledge` | ends | forgotten |
/// | `didRemove` | all | forgotten |
///
/// What is not legal changes nothing. A driver is one run of the download; what an earlier run
/// reports after the next has begun is not heard.
struct JobStateMachine: Hashable, Sendable {
    /// What the runner does, in the order given.
    enum Action: Hashable, Sendable {
        /// Begin a run with this number.
        case start(run: Int)
        /// End the run with this number.
        case stop(run: Int)
        /// Write the record, or remove it where the job is forgotten.
        case save
        /// Remove the entry with its bytes.
        case dropBytes
    }

    private(set) var state: DownloadState
    /// The number of the newest run; 0 before the first.
    private(set) var run = 0
    private(set) var hasDriver = false
    private(set) var isForgotten = false

    init(state: DownloadState = .queued) {
        self.state = state == .running ? .queued : state
    }

    /// Somebody wants the bytes: a new job, a resumed one, or one found after a restart.
    mutating func didAsk() -> [Action] {
        guard !hasDriver, !isForgotten else { return [] }
        state = .queued
        return [.save, begin()]
    }

    mutating func didBegin(run: Int) -> [Action] {
        guard isCurrent(run), state == .queued || state == .waitingForNetwork else { return [] }
        state = .running
        return [.save]
    }

    mutating func didLoseNetwork(run: Int) -> [Action] {
        guard isCurrent(run), state == .queued || state == .running else { return [] }
        state = .waitingForNetwork
        return [.save]
    }

    mutating func didPause() -> [Action] {
        guard !isForgotten, !state.isEnd, state != .paused else { return [] }
        state = .paused
        return end() + [.save]
    }

    /// Somebody cancels; `keepsBytes` is false where the entry is to be dropped as well.
    mutating func didCancel(keepsBytes: Bool) -> [Action] {
        guard !isForgotten, state != .finished else { return [] }
        let actions = end() + (keepsBytes ? [] : [.dropBytes])
        guard state != .cancelled else { return actions }
        state = .cancelled
        return actions + [.save]
    }

    mutating func didEnd(run: Int, _ error: CacheError?) -> [Action] {
        guard isCurrent(run) else { return [] }
        hasDriver = false
        switch error?.code {
        case nil:
            state = .finished
        case .cancelled?, .shutDown?:
            // Not by us, or the run would not be current: the cache is going down.
            state = .queued
        case _?:
            state = error.map { .failed(DownloadProblem($0)) } ?? .queued
        }
        return error?.code == .shutDown ? [] : [.save]
    }

    /// A run that is not a driver's, such as a reader's, has given up.
    mutating func didFailElsewhere(_ error: CacheError) -> [Action] {
        guard !hasDriver, !isForgotten, state == .queued else { return [] }
        state = .failed(DownloadProblem(error))
        return [.save]
    }

    mutating func didAcknowledge() -> [Action] {
        guard state.isEnd else { return [] }
        return didRemove()
    }

    mutating func didRemove() -> [Action] {
        guard !isForgotten else { return [] }
        let actions = end()
        isForgotten = true
        return actions + [.save]
    }

    private func isCurrent(_ run: Int) -> Bool { hasDriver && run == self.run }

    private mutating func begin() -> Action {
        run += 1
        hasDriver = true
        return .start(run: run)
    }

    private mutating func end() -> [Action] {
        guard hasDriver else { return [] }
        hasDriver = false
        return [.stop(run: run)]
    }
}
