import Testing

@testable import TieredCache

@Suite(.timeLimit(.minutes(10)))
struct JobStateMachineTests {
    private static let failure = CacheError(.httpStatus, "gone", status: 410)
    private static let storageError = CacheError(.originFailed, "closed")

    private static let states: [DownloadState] = [
        .queued, .waitingForNetwork, .paused, .cancelled, .finished,
        .failed(DownloadProblem(failure)), .failed(DownloadProblem(storageError)),
    ]

    @Test("From submission to acknowledgement")
    func life() {
        var job = JobStateMachine()
        #expect(job.didAsk() == [.save, .start(run: 1)])
        #expect(job.didAsk() == [])
        #expect(job.didBegin(run: 1) == [.save])
        #expect(job.state == .running)
        #expect(job.didLoseNetwork(run: 1) == [.save])
        #expect(job.state == .waitingForNetwork)
        #expect(job.didBegin(run: 1) == [.save])
        #expect(job.didAcknowledge() == [])
        #expect(job.didEnd(run: 1, nil) == [.save])
        #expect(job.state == .finished)
        #expect(job.didPause() == [] && job.didCancel(keepsBytes: true) == [])
        // Asked for once more: what is stored answers, and what was evicted meanwhile is fetched.
        #expect(job.didAsk() == [.save, .start(run: 2)])
        #expect(job.didEnd(run: 2, nil) == [.save])
        #expect(job.didAcknowledge() == [.save])
        #expect(job.isForgotten)
    }

    @Test("What an earlier run reports is not heard")
    func earlierRun() {
        var job = JobStateMachine()
        _ = job.didAsk()
        #expect(job.didPause() == [.stop(run: 1), .save])
        #expect(job.didEnd(run: 1, CacheError(.cancelled, "")) == [])
        #expect(job.state == .paused)
        #expect(job.didAsk() == [.save, .start(run: 2)])
        #expect(job.didEnd(run: 1, nil) == [])
        #expect(job.didBegin(run: 1) == [] && job.didLoseNetwork(run: 1) == [])
        #expect(job.state == .queued)
    }

    @Test("Cancelling keeps or drops the bytes, and can be taken back")
    func cancel() {
        var job = JobStateMachine()
        _ = job.didAsk()
        #expect(job.didCancel(keepsBytes: true) == [.stop(run: 1), .save])
        #expect(job.state == .cancelled && !job.state.isMeantToContinue)
        // Dropped later, though the job is cancelled already.
        #expect(job.didCancel(keepsBytes: false) == [.dropBytes])
        #expect(job.didAsk() == [.save, .start(run: 2)])
        #expect(job.didCancel(keepsBytes: false) == [.stop(run: 2), .dropBytes, .save])
    }

    @Test("Failures are final or transient, an interruption is neither")
    func ends() {
        func state(after error: CacheError) -> DownloadState {
            var job = JobStateMachine()
            _ = job.didAsk()
            _ = job.didEnd(run: 1, error)
            return job.state
        }
        #expect(state(after: Self.failure) == .failed(DownloadProblem(Self.failure)))
        #expect(!state(after: Self.failure).isMeantToContinue)
        #expect(state(after: Self.storageError).isMeantToContinue)
        let busy = CacheError(.httpStatus, "busy", status: 503)
        #expect(state(after: busy).isMeantToContinue)
        #expect(!state(after: CacheError(.integrityFailed, "x")).isMeantToContinue)
        #expect(state(after: CacheError(.shutDown, "x")) == .queued)
        #expect(state(after: CacheError(.cancelled, "x")) == .queued)
    }

    @Test("After a restart each state is what it was, except that nothing runs")
    func restart() {
        for state in Self.states { #expect(JobStateMachine(state: state).state == state) }
        #expect(JobStateMachine(state: .running).state == .queued)
        for state in Self.states {
            var job = JobStateMachine(state: state)
            #expect(job.didAsk() == [.save, .start(run: 1)])
        }
    }

    @Test("Whatever comes in whatever order: one driver at most, and no life after the end")
    func everyOrder() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(seed: seed)
        for _ in 0..<2_000 {
            var job = JobStateMachine(state: Self.states.randomElement(using: &random) ?? .queued)
            var running: Set<Int> = []
            for _ in 0..<12 {
                let run = Int.random(in: 0...max(1, job.run), using: &random)
                let actions: [JobStateMachine.Action]
                switch Int.random(in: 0..<8, using: &random) {
                case 0: actions = job.didAsk()
                case 1: actions = job.didBegin(run: run)
                case 2: actions = job.didLoseNetwork(run: run)
                case 3: actions = job.didPause()
                case 4: actions = job.didCancel(keepsBytes: Bool.random(using: &random))
                case 5:
                    let wasCurrent = job.hasDriver && job.run == run
                    actions = job.didEnd(
                        run: run,
                        Bool.random(using: &random) ? nil : Self.storageError
                    )
                    if wasCurrent { running.remove(run) }
                case 6: actions = job.didAcknowledge()
                default: actions = job.didRemove()
                }
                for action in actions {
                    switch action {
                    case .start(let run): #expect(running.insert(run).inserted, "seed \(seed)")
                    case .stop(let run): #expect(running.remove(run) != nil, "seed \(seed)")
                    case .save, .dropBytes: break
                    }
                }
                #expect(running.count <= 1, "seed \(seed)")
                #expect(job.hasDriver == (running == [job.run]), "seed \(seed)")
                #expect(!job.isForgotten || running.isEmpty, "seed \(seed)")
            }
        }
    }
}
