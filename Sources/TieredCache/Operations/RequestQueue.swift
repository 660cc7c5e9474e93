/// Gives slots to transfers: a bounded number at once, by priority.
///
/// All methods may be called from any thread and return at once. ``RequestQueueStateMachine``
/// decides under a lock; the effects happen after it, and after that of the ``SharedTransfers``
/// under which some are called.
package final class RequestQueue: Sendable {
    /// The work of a transfer: fetches the bytes, reports its position to `TransferContext`,
    /// returns when done.
    ///
    /// Runs at most once, in a task that prefers the queue's executor, so it may block on the disk
    /// after its first wait; until then it may run on the thread of the request that joined. It must
    /// return soon after its task is cancelled; it keeps its slot until then.
    package typealias Work = @Sendable (TransferContext) async -> Result<Void, CacheError>

    struct State {
        var machine: RequestQueueStateMachine
        var contexts: [TransferID: TransferContext] = [:]
    }

    /// An action with the transfer that it concerns; to be performed outside all locks.
    enum Effect: Sendable {
        case start(TransferContext)
        case grant(TransferContext)
        case pause(TransferContext)
        case cancel(TransferContext)
        case drop(TransferContext)
        case drained
    }

    let state: Guarded<State>
    private let executor: (any TaskExecutor)?
    /// The threads for which work that may block has to leave that of a caller; nil where there are
    /// none.
    private let threads: IOExecutor?
    private let drained = Latch<Void>()

    /// Creates a queue.
    ///
    /// - Parameters:
    ///   - limits: the maximum numbers of running downloads, in total and per host.
    ///   - executor: runs the transfers; nil for the global executor.
    package init(
        limits: RequestQueueStateMachine.Limits = .init(),
        executor: (any TaskExecutor)? = nil
    ) {
        state = Guarded(State(machine: RequestQueueStateMachine(limits: limits)))
        self.executor = executor
        threads = (executor as? IOExecutor).flatMap { $0.hasThreads ? $0 : nil }
    }

    /// Starts no new transfer until ``resume()``; started ones continue.
    package func suspend() { state.withLock { $0.machine.suspend() } }

    /// Reverts ``suspend()``.
    package func resume() { perform(decide { $0.resume() }) }

    /// Refuses transfers from now on.
    func refuse() { perform(decide { $0.shutDown() }) }

    /// Waits, after ``refuse()``, until all work has returned; or until this task is cancelled.
    func waitUntilDrained() async { _ = await drained.wait() }

    // MARK: Transfers

    /// Adds a transfer, whose work begins once it has a slot.
    ///
    /// - Returns: what is to be performed; nil if the queue refuses it.
    func enter(
        _ context: TransferContext,
        host: String,
        priority: RequestPriority
    ) -> [Effect]? {
        state.withLock { state in
            let actions = state.machine.enter(
                context.id,
                host: host,
                resource: ObjectIdentifier(context.shared),
                priority: priority
            )
            guard let actions else { return nil }
            state.contexts[context.id] = context
            return Self.effects(of: actions, in: &state)
        }
    }

    func setPriority(_ priority: RequestPriority, of transfer: TransferID) -> [Effect] {
        decide { $0.setPriority(priority, of: transfer) }
    }

    /// Ends a transfer that no request wants any more.
    func cancel(_ transfer: TransferID) -> [Effect] { decide { $0.cancel(transfer) } }

    /// The transfer's work has returned.
    func finish(_ transfer: TransferID) -> [Effect] {
        state.withLock { state in
            state.contexts[transfer] = nil
            let actions = state.machine.didFinish(transfer)
            return Self.effects(of: actions, in: &state)
        }
    }

    func isWaiting(_ transfer: TransferID) -> Bool {
        state.withLock { $0.machine.isWaiting(transfer) }
    }

    func priority(of transfer: TransferID) -> RequestPriority {
        state.withLock { $0.machine.transfers[transfer]?.priority ?? .background }
    }

    func didRespond(_ transfer: TransferID) {
        state.withLock { $0.machine.didRespond(transfer) }
    }

    var mayKeepConnection: Bool { state.withLock { $0.machine.mayKeepConnection } }

    func stallIfRoom(_ transfer: TransferID) -> Bool {
        let effects = state.withLock { state in
            state.machine.stallIfRoom(transfer).map { Self.effects(of: $0, in: &state) }
        }
        guard let effects else { return false }
        perform(effects)
        return true
    }

    func didStall(_ transfer: TransferID) { perform(decide { $0.didStall(transfer) }) }

    func didUnstall(_ transfer: TransferID) { perform(decide { $0.didUnstall(transfer) }) }

    // MARK: Effects

    private func decide(
        _ input: (inout RequestQueueStateMachine) -> [RequestQueueStateMachine.Action]
    ) -> [Effect] {
        state.withLock { state in
            let actions = input(&state.machine)
            return Self.effects(of: actions, in: &state)
        }
    }

    private static func effects(
        of actions: [RequestQueueStateMachine.Action],
        in state: inout State
    ) -> [Effect] {
        actions.compactMap { action in
            switch action {
            case .start(let transfer): state.contexts[transfer].map(Effect.start)
            case .grant(let transfer): state.contexts[transfer].map(Effect.grant)
            case .pause(let transfer): state.contexts[transfer].map(Effect.pause)
            case .cancel(let transfer): state.contexts[transfer].map(Effect.cancel)
            case .drop(let transfer):
                state.contexts.removeValue(forKey: transfer).map(Effect.drop)
            case .drained: .drained
            }
        }
    }

    /// Performs what was decided.
    ///
    /// - Parameters:
    ///   - effects: the effects.
    ///   - beginningHere: whether work may begin on this thread and stay there until it first waits.
    func perform(_ effects: [Effect], beginningHere: Bool = false) {
        for effect in effects {
            switch effect {
            case .start(let context): start(context, beginsHere: beginningHere)
            case .grant(let context): context.grant()
            case .pause(let context): context.pause()
            case .cancel(let context): context.cancel()
            // Its work may own objects whose release comes back to this queue.
            case .drop(let context): withExtendedLifetime(context.takeWork()) {}
            case .drained: drained.complete(with: .success(()))
            }
        }
    }

    /// Starts a transfer's work in a task that prefers the queue's executor.
    ///
    /// - Parameters:
    ///   - context: the transfer.
    ///   - beginsHere: whether it may begin on this thread, which saves a change of thread until
    ///     it first waits, usually for the origin's response.
    private func start(_ context: TransferContext, beginsHere: Bool) {
        // A thread of the queue's own need not be left: a task that wants to would come back to it, as
        // it is the one that is awake, for ever.
        let isOnCallers = beginsHere && threads.map { !$0.isCurrent } ?? false
        guard let work = context.takeWork(onCallersThread: isOnCallers) else {
            preconditionFailure("\(context.id) starts without work")
        }
        let run: @Sendable () async -> Void = {
            // A cancellation before the work began wins (invariant 11).
            let result = context.isCancelled ? .failure(.leftTransfer) : await work(context)
            context.shared.didFinish(context, with: result)
        }
        if beginsHere, #available(macOS 26, iOS 26, tvOS 26, visionOS 26, watchOS 26, *) {
            context.attach(Task.immediate(executorPreference: executor, operation: run))
        } else {
            context.attach(Task(executorPreference: executor, operation: run))
        }
    }
}
