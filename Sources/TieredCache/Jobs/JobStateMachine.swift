/// Decides the state of a download job.
///
/// Performs no I/O and knows no request.
///
/// | input | legal in | leads to |
/// | --- | --- | --- |
/// | `didAsk` (submitted, resumed, continued) | all | `queued`, with a driver |
/// | `didBegin` | `queued`, `waitingForNetwork` | `running` |
/// | `didLoseNetwork` | `queued`, `running` | `waitingForNetwork` |
/// | `didPause` | all but ends | `paused`, without a driver |
/// | `didCancel` | all but `finished` | `cancelled`, without a driver |
/// | `didEnd` | any with a driver | `finished`, `failed`, or `queued` after an interruption |
/// | `didFailElsewhere` | `queued` without a driver | `failed` |
/// | `didAcknowledge` | ends | forgotten |
/// | `didRemove` | all | forgotten |
///
/// An input that is not legal changes nothing. A driver is one run of the download; reports of an
/// earlier run are ignored once the next has begun.
struct JobStateMachine: Hashable, Sendable {
    /// An action of the runner, which performs them in order.
    enum Action: Hashable, Sendable {
        /// Begin a run with this number.
        case start(run: Int)
        /// End the run with this number.
        case stop(run: Int)
        /// Write the record, or delete it if the job was removed.
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

    /// The download is requested: a new job, a resumed one, or one found after a restart.
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

    /// The job is cancelled; `keepsBytes` is false if the entry is to be removed as well.
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
            // Not by a command, or the run would not be current: the cache is shutting down.
            state = .queued
        case _?:
            state = error.map { .failed(DownloadProblem($0)) } ?? .queued
        }
        return error?.code == .shutDown ? [] : [.save]
    }

    /// A run without a driver, such as that of a reader, has failed.
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
