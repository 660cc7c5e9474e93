import HTTPCaching

/// One job: performs the actions of ``JobStateMachine``, writes its record, and reports its status.
final class DownloadJob: Sendable {
    struct State {
        var machine: JobStateMachine
        var record: JobRecord
        /// Includes the credentials that the record does not store.
        var request: CacheRequest
        var status: DownloadStatus
        /// The tasks of runs, by their number; more than one only while one ends.
        var tasks: [Int: Task<Void, Never>] = [:]
        var operation: CombinedOperation<CacheResponse, LookupOperation.Remainder>?
        var lastReport: MonotonicTime
        /// Unfinished tasks that record reports of transfers, by number.
        var notes: [UInt64: Task<Void, Never>] = [:]
        var nextNote: UInt64 = 0
        /// Whether a delayed report is scheduled.
        var hasLateReport = false
        var watchers = StreamWatchers<DownloadStatus>()
    }

    let id: DownloadID
    let responder: Responder
    private let maximumSegments: Int
    /// Whether it has a record of its own; not where its caller keeps one.
    private let isListed: Bool
    let state: Guarded<State>

    /// Creates a job that has not run yet; `request` has its credentials, if they are known.
    init(
        _ record: JobRecord,
        request: CacheRequest,
        responder: Responder,
        maximumSegments: Int,
        isListed: Bool = true
    ) {
        id = record.id
        self.isListed = isListed
        self.responder = responder
        self.maximumSegments = maximumSegments
        var status = DownloadStatus(
            id: record.id,
            url: record.url,
            state: record.state,
            priority: record.priority
        )
        status.attempts = record.attempts
        status.bytesFromOrigin = record.bytesFromOrigin
        status.lacksCredentials =
            (record.lacksCredentials || record.lacksRuleFields) && request.fields == record.fields
        state = Guarded(
            State(
                machine: JobStateMachine(state: record.state),
                record: record,
                request: request,
                status: status,
                lastReport: responder.time.monotonicTime()
            )
        )
    }

    deinit {
        // Watchers keep the job alive, except those whose stream has no consumer any more.
        for watcher in state.withLock({ $0.watchers.all }) { watcher.finish() }
    }

    private var storage: Storage { responder.storage }
    var status: DownloadStatus { state.withLock { $0.status } }
    var request: CacheRequest { state.withLock { $0.request } }
    var isForgotten: Bool { state.withLock { $0.machine.isForgotten } }

    // MARK: Commands

    /// Starts a run unless one is running; the record is on disk on return.
    func start(with request: CacheRequest? = nil) async {
        state.withLock { state in
            guard let request, !state.machine.hasDriver else { return }
            state.request.takeFields(of: request)
            state.status.lacksCredentials = false
        }
        await decide { $0.didAsk() }
    }

    /// Applies rules for hosts to the next run: the record has none of their fields.
    func apply(_ rules: HostRules) {
        state.withLock { state in
            guard !state.machine.hasDriver else { return }
            rules.apply(to: &state.request)
            if !state.record.lacksCredentials, !state.request.ruleFields.isEmpty {
                state.status.lacksCredentials = false
            }
        }
    }

    /// Writes the record of a job that the caller carries out.
    func note() async { await save() }

    /// Records the failure of a run that the caller carried out.
    func noteFailure(_ error: CacheError) async { await decide { $0.didFailElsewhere(error) } }

    /// Ends the current run, which continues after a restart, and all writing: the cache is
    /// closing.
    func stop() async {
        let tasks = state.withLock { Array($0.tasks.values) }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        for note in state.withLock({ Array($0.notes.values) }) { await note.value }
    }

    func pause() async { await decide { $0.didPause() } }

    func cancel(keepsBytes: Bool) async { await decide { $0.didCancel(keepsBytes: keepsBytes) } }

    func acknowledge() async { await decide { $0.didAcknowledge() } }

    func remove() async { await decide { $0.didRemove() } }

    /// Changes the priority at once, while the job waits for a slot or runs.
    func setPriority(_ priority: RequestPriority) async {
        let operation = state.withLock { state in
            state.request.priority = priority
            state.record.priority = priority
            state.status.priority = priority
            return state.operation
        }
        operation?.priority = priority
        report(isForced: true)
        await save()
    }

    /// Reads how much is stored, for a job that this process has not run yet.
    func loadStoredBytes() async {
        let key = request.key
        do throws(CacheError) {
            guard let entry = try await storage.summary(of: key) else { return }
            state.withLock { state in
                guard !state.machine.hasDriver else { return }
                state.status.bytes = entry.storedBytes
                state.status.total = entry.length
            }
        } catch {
            responder.recorder.didFailToLookUp(key, error: error)
        }
    }

    // MARK: Acting

    private func decideLater(
        _ input: @escaping @Sendable (inout JobStateMachine) -> [JobStateMachine.Action]
    ) {
        // Under the lock, because the task locks it to remove itself from the list.
        state.withLock { state in
            state.nextNote += 1
            let number = state.nextNote
            state.notes[number] = Task { [self] in
                await decide(input)
                self.state.withLock { _ = $0.notes.removeValue(forKey: number) }
            }
        }
    }

    private func decide(_ input: (inout JobStateMachine) -> [JobStateMachine.Action]) async {
        let actions = state.withLock { state in
            let actions = input(&state.machine)
            state.record.state = state.machine.state
            state.status.state = state.machine.state
            return actions
        }
        for action in actions { await perform(action) }
        guard !actions.isEmpty else { return }
        report(isForced: true)
    }

    private func perform(_ action: JobStateMachine.Action) async {
        switch action {
        case .start(let run):
            start(run)
        case .stop(let run):
            let task = state.withLock { $0.tasks[run] }
            task?.cancel()
            // Its last byte is on disk before the caller learns that it has stopped.
            await task?.value
        case .save:
            await save()
        case .dropBytes:
            await dropBytes()
        }
    }

    /// Writes the record; without it a restart loses the job, not its bytes.
    private func save() async {
        guard isListed else { return }
        await storage.writers.run { [self] in
            guard let store = storage.disk.openStore else { return }
            do throws(CacheError) {
                try JobStore(store).save(id) {
                    state.withLock { $0.machine.isForgotten ? nil : $0.record }
                }
            } catch {
                responder.recorder.didFailToStore(request.key, target: request.target, error: error)
            }
        }
    }

    /// Removes the entry once no run can begin another transfer; a transfer that a run has left
    /// creates no entry.
    private func dropBytes() async {
        // Another command may have ended a run that still winds down.
        let ending = state.withLock { state in
            let current = state.machine.hasDriver ? state.machine.run : nil
            return state.tasks.filter { $0.key != current }.map(\.value)
        }
        for task in ending { await task.value }
        do throws(CacheError) {
            _ = try await storage.remove(request.key)
        } catch {
            responder.recorder.didFailToStore(request.key, target: request.target, error: error)
        }
    }

    // MARK: Runs

    private func start(_ run: Int) {
        // Under the lock, because the task locks it to remove itself from the list.
        state.withLock { state in
            guard state.machine.hasDriver, state.machine.run == run else { return }
            state.tasks[run] = Task { await drive(run) }
        }
    }

    private func drive(_ run: Int) async {
        var outcome: CacheError?
        var changes = 0
        repeat {
            do throws(CacheError) {
                try await fetch(run)
                outcome = nil
            } catch {
                outcome = error
                changes += 1
            }
            // A representation that changed, or did not match its digest, is fetched again a few
            // times.
        } while outcome?.code == .representationChanged && changes <= 3
        await didEnd(run, error: outcome)
    }

    private func didEnd(_ run: Int, error: CacheError?) async {
        let ended = state.withLock { state in
            state.machine.run == run ? state.operation.take() : nil
        }
        // It may own a reader, whose release resumes tasks.
        withExtendedLifetime(ended) {}
        await decide { $0.didEnd(run: run, error) }
        // After the end is on disk: closing the cache waits for this task.
        state.withLock { $0.tasks[run] = nil }
    }

    private func fetch(_ run: Int) async throws(CacheError) {
        var request = request
        let onNotice = request.onNotice
        request.onNotice = { [weak self] notice in
            self?.didNotice(notice, run: run)
            onNotice?(notice)
        }
        let operation = responder.operation(for: request)
        let replaced = state.withLock { state in
            defer { state.operation = operation }
            return state.operation
        }
        // Released outside the lock: its release may resume tasks that take the lock.
        withExtendedLifetime(replaced) {}
        let response: CacheResponse
        do throws(CacheError) {
            response = try await operation.value()
        } catch {
            // It may be about to begin a transfer.
            await operation.waitForWork()
            throw error
        }
        try response.requireSuccess(of: request)
        var progress = JobProgress(
            start: response.range.lowerBound,
            now: responder.time.monotonicTime()
        )
        await note(response, progress: &progress, run: run)
        let segments = JobSegments(
            transfers: responder.transfers,
            count: maximumSegments,
            request: request,
            response: response
        )
        do throws(CacheError) {
            try await receive(response, progress: &progress, run: run)
        } catch {
            await segments.end()
            throw error
        }
        await segments.end()
        await note(response, progress: &progress, run: run)
        // The purpose of a download is to store the bytes.
        if let storageError = response.storageError { throw storageError }
    }

    /// Reads the body to its end, which waits for its verification.
    private func receive(
        _ response: CacheResponse,
        progress: inout JobProgress,
        run: Int
    ) async throws(CacheError) {
        let request = request
        var checkpoints = JobCheckpoints(now: responder.time.monotonicTime())
        while let chunk = try await response.body.source.next() {
            progress.position += Int64(chunk.count)
            await note(response, progress: &progress, run: run)
            guard request.isPinned,
                checkpoints.isDue(at: progress.position, now: responder.time.monotonicTime())
            else { continue }
            await checkpoint(response.body.source.storageKey ?? request.key)
        }
    }

    private func note(_ response: CacheResponse, progress: inout JobProgress, run: Int) async {
        let now = responder.time.monotonicTime()
        let news = progress.didReach(fromOrigin: response.bytesFromOrigin, now: now)
        state.withLock { state in
            state.record.bytesFromOrigin += news
            state.status.bytesFromOrigin = state.record.bytesFromOrigin
            state.status.bytesFromCache = response.bytesFromCache
            state.status.bytes = progress.position
            state.status.source = response.lastBytesSource ?? state.status.source
            state.status.total = response.completeLength ?? state.status.total
            state.status.bytesPerSecond = progress.rate.bytesPerSecond
        }
        if news > 0 { await decide { $0.didBegin(run: run) } }
        report()
    }

    /// Syncs the received bytes, so that a power failure does not lose them.
    private func checkpoint(_ key: CacheKey) async {
        await storage.writers.run { [self] in
            do throws(CacheError) {
                try storage.disk.openStore?.entry(for: key, isUse: false)?.checkpoint()
            } catch {
                // The bytes are stored; only a power failure could lose them.
                responder.recorder.didFailToStore(request.key, target: request.target, error: error)
            }
        }
    }

    /// Handles a notice of the transfer, on a thread that must not wait.
    private func didNotice(_ notice: DownloadNotice, run: Int) {
        switch notice {
        case .started:
            decideLater { $0.didBegin(run: run) }
        case .waitingForNetwork:
            decideLater { $0.didLoseNetwork(run: run) }
        case .retrying:
            state.withLock { state in
                state.record.attempts += 1
                state.status.attempts = state.record.attempts
            }
            report(isForced: true)
        case .queued, .restarted:
            break
        }
    }
}
