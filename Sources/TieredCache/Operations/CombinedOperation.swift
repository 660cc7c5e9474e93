/// The result of a lookup.
package enum LookupResult<Output: Sendable, Remainder: Sendable>: Sendable {
    /// A complete result: nothing is downloaded.
    case complete(Output)
    /// No complete result; the remainder tells the download what to fetch and what is stored.
    case incomplete(Remainder)
}

/// One request: a lookup and, only if that finds no complete result, a download.
///
/// Runs at most once and ends exactly once. Several tasks may wait for it; a cancelled task stops
/// waiting, and cancelling the last of them cancels the operation. A cancellation before the end
/// wins, also one before the start.
package final class CombinedOperation<Output: Sendable, Remainder: Sendable>: Sendable {
    /// Looks in memory and on disk, and checks freshness; never waits for a download slot.
    package typealias Lookup =
        @Sendable () async throws(CacheError) -> LookupResult<Output, Remainder>
    /// Fetches the missing bytes.
    ///
    /// Registers with the `OperationContext` the target of priority changes.
    package typealias Download =
        @Sendable (Remainder, OperationContext) async throws(CacheError) -> Output

    private struct State {
        var machine = CombinedOperationStateMachine()
        var task: Task<Void, Never>?
        /// Released when the operation ends, because the closures may own much.
        var work: (Lookup, Download)?
    }

    private let state: Guarded<State>
    private let executor: (any TaskExecutor)?
    private let context: OperationContext
    private let latch = Latch<Output>()
    private let didEnd: @Sendable (Result<Output, CacheError>) -> Void

    /// Creates an operation; nothing happens before ``start()`` or ``value()``.
    ///
    /// - Parameters:
    ///   - priority: the initial priority.
    ///   - executor: runs lookup and download, which may block on it; nil for the global executor.
    ///   - lookup: searches the tiers.
    ///   - download: completes the remainder of the lookup.
    ///   - didEnd: called once, with the outcome.
    package init(
        priority: RequestPriority = .normal,
        executor: (any TaskExecutor)? = nil,
        lookup: @escaping Lookup,
        download: @escaping Download,
        didEnd: @escaping @Sendable (Result<Output, CacheError>) -> Void = { _ in }
    ) {
        self.didEnd = didEnd
        state = Guarded(State(work: (lookup, download)))
        self.executor = executor
        context = OperationContext(priority: priority)
    }

    /// The priority of the request; a change, at any time, reaches the download at once.
    package var priority: RequestPriority {
        get { context.priority }
        set { context.priority = newValue }
    }

    /// The number of tasks that wait for the output.
    var waiters: Int { latch.waiters }

    /// Starts the lookup; ignored if it has started or the operation was cancelled.
    package func start() {
        let work: (Lookup, Download)? = state.withLock { state in
            guard state.machine.didStart() == .lookUp else { return nil }
            defer { state.work = nil }
            return state.work
        }
        guard let (lookup, download) = work else { return }
        let task = Task(executorPreference: executor) {
            await self.run(lookup, then: download)
        }
        let isLate = state.withLock { state in
            state.task = task
            return state.machine.isFinished
        }
        // Cancelled between the two locks, when there was no task yet.
        if isLate { task.cancel() }
    }

    /// Waits until neither lookup nor download runs any more, as they may after a cancellation;
    /// cancelling the waiting task changes nothing.
    func waitForWork() async { await state.withLock { $0.task }?.value }

    /// Ends the operation with ``CacheError/Code/cancelled``, unless it has ended.
    ///
    /// Lookup or download may still run for a moment; see ``waitForWork()``.
    package func cancel() {
        let (action, task, work) = state.withLock { state in
            defer { state.work = nil }
            return (state.machine.didCancel(), state.task, state.work)
        }
        // Released behind the lock: the closures may own much, and their release may call back.
        withExtendedLifetime(work) {}
        guard action == .completeCancelled else { return }
        task?.cancel()
        complete(with: .failure(.leftTransfer))
    }

    /// Starts the operation if necessary and waits for its output.
    ///
    /// - Returns: the output, the same for all waiting tasks.
    /// - Throws: the error of the lookup or the download; ``CacheError/Code/cancelled`` if this
    ///   task or the operation was cancelled.
    package func value() async throws(CacheError) -> Output {
        start()
        guard let outcome = await latch.wait(whenAbandoned: { self.cancel() }) else {
            throw .leftTransfer
        }
        return try outcome.get()
    }

    private func run(_ lookup: Lookup, then download: Download) async {
        // A cancellation before this task ran wins: no lookup is made.
        guard !state.withLock({ $0.machine.isFinished }) else { return }
        do throws(CacheError) {
            let answer = try await lookup()
            guard case .incomplete(let remainder) = answer else {
                guard case .complete(let output) = answer else { return }
                return finish(with: .success(output)) { $0.didLookUp(isFinal: true) }
            }
            let action = state.withLock { $0.machine.didLookUp(isFinal: false) }
            guard action == .download else { return }
            await runDownload(of: remainder, by: download)
        } catch {
            finish(with: .failure(error)) { $0.didLookUp(isFinal: true) }
        }
    }

    private func runDownload(of remainder: Remainder, by download: Download) async {
        let outcome: Result<Output, CacheError>
        do throws(CacheError) {
            outcome = .success(try await download(remainder, context))
        } catch {
            outcome = .failure(error)
        }
        context.forwardPriority(to: nil)
        finish(with: outcome) { $0.didDownload() }
    }

    private func finish(
        with outcome: Result<Output, CacheError>,
        _ input: (inout CombinedOperationStateMachine) -> CombinedOperationStateMachine.Action
    ) {
        let action = state.withLock { state in
            state.task = nil
            return input(&state.machine)
        }
        guard action == .complete else { return }
        complete(with: outcome)
    }

    private func complete(with outcome: Result<Output, CacheError>) {
        if latch.complete(with: outcome) { didEnd(outcome) }
    }
}
