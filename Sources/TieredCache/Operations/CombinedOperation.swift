/// What a lookup found.
package enum LookupAnswer<Output: Sendable, Remainder: Sendable>: Sendable {
    /// All that was asked for: nothing is downloaded.
    case complete(Output)
    /// Not all; the remainder tells the download what to bring and what is there.
    case incomplete(Remainder)
}

/// One request: a lookup and, only if that did not answer in full, a download.
///
/// It runs at most once and ends exactly once. Several tasks may wait for it; when one of them is
/// cancelled it stops waiting, and when the last of them is, so is the operation. A cancel that
/// comes before the start, or at any time before the end, wins.
package final class CombinedOperation<Output: Sendable, Remainder: Sendable>: Sendable {
    /// Asks memory, disk and freshness; never waits for a download slot.
    package typealias Lookup =
        @Sendable () async throws(CacheError) -> LookupAnswer<Output, Remainder>
    /// Brings what is missing.
    ///
    /// Says by `OperationContext` who is to hear of priority changes.
    package typealias Download =
        @Sendable (Remainder, OperationContext) async throws(CacheError) -> Output

    private struct State {
        var machine = CombinedOperationStateMachine()
        var task: Task<Void, Never>?
        /// Given back when the operation ends, because they may own much.
        var work: (Lookup, Download)?
    }

    private let state: Guarded<State>
    private let executor: (any TaskExecutor)?
    private let context: OperationContext
    private let latch = Latch<Output>()

    /// Creates an operation; nothing happens before ``start()`` or ``value()``.
    ///
    /// - Parameters:
    ///   - priority: how urgent the request is at first.
    ///   - executor: where lookup and download run; one on which they may block.
    ///   - lookup: asks the tiers.
    ///   - download: brings what the lookup left over.
    package init(
        priority: RequestPriority = .normal,
        executor: (any TaskExecutor)? = nil,
        lookup: @escaping Lookup,
        download: @escaping Download
    ) {
        state = Guarded(State(work: (lookup, download)))
        self.executor = executor
        context = OperationContext(priority: priority)
    }

    /// How urgent the request is; may be set at any time and reaches the download at once.
    package var priority: RequestPriority {
        get { context.priority }
        set { context.relay.priority = newValue }
    }

    /// How many tasks wait for the output.
    var waiters: Int { latch.waiters }

    /// Begins the lookup; ignored if it has begun or the operation was cancelled.
    package func start() {
        let work: (Lookup, Download)? = state.withLock { state in
            guard state.machine.didStart() == .lookUp else { return nil }
            defer { state.work = nil }
            return state.work
        }
        guard let (lookup, download) = work else { return }
        let task = Task(executorPreference: executor) {
            await self.run(lookup, download)
        }
        let isLate = state.withLock { state in
            if !state.machine.isFinished { state.task = task }
            return state.machine.isFinished
        }
        if isLate { task.cancel() }
    }

    /// Ends the operation with ``CacheError/Code/cancelled``, unless it has ended.
    package func cancel() {
        let (action, task, work) = state.withLock { state in
            defer { (state.task, state.work) = (nil, nil) }
            return (state.machine.didCancel(), state.task, state.work)
        }
        withExtendedLifetime(work) {}
        guard action == .completeCancelled else { return }
        task?.cancel()
        latch.complete(with: .failure(.leftTransfer))
    }

    /// Starts the operation if need be and waits for its output.
    ///
    /// - Returns: the output, the same for everybody who waits.
    /// - Throws: what the lookup or the download threw; ``CacheError/Code/cancelled`` if this task
    ///   or the operation was cancelled.
    package func value() async throws(CacheError) -> Output {
        start()
        guard let outcome = await latch.wait(whenAbandoned: { self.cancel() }) else {
            throw .leftTransfer
        }
        return try outcome.get()
    }

    private func run(_ lookup: Lookup, _ download: Download) async {
        // A cancel that came before this task ran wins: nothing is asked.
        guard !state.withLock({ $0.machine.isFinished }) else { return }
        do throws(CacheError) {
            let answer = try await lookup()
            guard case .incomplete(let remainder) = answer else {
                guard case .complete(let output) = answer else { return }
                return finish(.success(output)) { $0.didLookUp(isFinal: true) }
            }
            let action = state.withLock { $0.machine.didLookUp(isFinal: false) }
            guard action == .download else { return }
            await runDownload(remainder, download)
        } catch {
            finish(.failure(error)) { $0.didLookUp(isFinal: true) }
        }
    }

    private func runDownload(_ remainder: Remainder, _ download: Download) async {
        let outcome: Result<Output, CacheError>
        do throws(CacheError) {
            outcome = .success(try await download(remainder, context))
        } catch {
            outcome = .failure(error)
        }
        context.forwardPriority(to: nil)
        finish(outcome) { $0.didDownload() }
    }

    private func finish(
        _ outcome: Result<Output, CacheError>,
        _ input: (inout CombinedOperationStateMachine) -> CombinedOperationStateMachine.Action
    ) {
        let action = state.withLock { state in
            state.task = nil
            return input(&state.machine)
        }
        guard action == .complete else { return }
        latch.complete(with: outcome)
    }
}

/// What a download learns from the operation that it belongs to.
package final class OperationContext: Sendable {
    let relay: PriorityRelay

    init(priority: RequestPriority) {
        relay = PriorityRelay(priority)
    }

    /// How urgent the operation is at present.
    package var priority: RequestPriority { relay.priority }

    /// Calls `target` at once and whenever the priority changes, until another takes its place.
    package func forwardPriority(to target: (@Sendable (RequestPriority) -> Void)?) {
        relay.setTarget(target)
    }

    /// Makes a transfer as urgent as the operation for as long as it is subscribed to.
    package func forwardPriority(to subscription: Subscription) {
        relay.setTarget { [weak subscription] priority in subscription?.priority = priority }
    }
}
