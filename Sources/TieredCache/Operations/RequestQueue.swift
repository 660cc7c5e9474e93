/// Runs downloads: a bounded number at once, by priority, each shared by all requests for its
/// bytes.
///
/// All methods may be called from any thread and return at once. ``RequestQueueStateMachine``
/// decides under a lock; the effects happen after it.
package final class RequestQueue: Sendable {
    /// The work of a transfer: fetches the bytes, reports its position to `TransferContext`,
    /// returns when done.
    ///
    /// Runs at most once, in a task that prefers the queue's executor, so it may block on the disk
    /// after its first wait; until then it may run on the thread that called ``join``. It must
    /// return soon after its task is cancelled; it keeps its slot until then.
    package typealias Work = @Sendable (TransferContext) async -> Result<Void, CacheError>

    struct State {
        var machine: RequestQueueStateMachine
        var works: [TransferID: Work] = [:]
        var contexts: [TransferID: TransferContext] = [:]
        var latches: [SubscriberID: Latch<Void>] = [:]
    }

    /// An action with the objects that it concerns.
    private enum Effect {
        case start(TransferContext, Work)
        case grant(TransferContext)
        case pause(TransferContext)
        case cancel(TransferContext)
        /// Either may own objects whose release calls this queue, so they are released outside the
        /// lock.
        case drop(Work?, TransferContext?)
        case complete(Latch<Void>, Latch<Void>.Outcome)
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
    ///   - firstTransfer: the base of its transfer numbers; queues of one cache use distinct ones.
    ///   - executor: runs the transfers; nil for the global executor.
    package init(
        limits: RequestQueueStateMachine.Limits = .init(),
        firstTransfer: UInt64 = 0,
        executor: (any TaskExecutor)? = nil
    ) {
        state = Guarded(
            State(machine: RequestQueueStateMachine(limits: limits, firstTransfer: firstTransfer))
        )
        self.executor = executor
        threads = (executor as? IOExecutor).flatMap { $0.hasThreads ? $0 : nil }
    }

    /// Subscribes to the transfer that will bring the byte at `offset`, or starts one.
    ///
    /// Bytes before a transfer's position have been delivered: read the stored bytes first, then
    /// join at the first missing one. Between the two a transfer may pass that byte; the work of a
    /// new transfer should therefore begin with a look at the bytes stored by then.
    ///
    /// - Parameters:
    ///   - group: identifies requests that may share a transfer.
    ///   - offset: the first missing byte.
    ///   - coverage: the bytes that a new transfer would bring; contains `offset`. `..<Int64.max`
    ///     if the end is unknown.
    ///   - host: the host that a new transfer counts against.
    ///   - priority: the priority of the subscriber.
    ///   - maximumDistance: the maximum number of bytes between a transfer's position and `offset`;
    ///     nil for no limit.
    ///   - horizon: the end of the bytes that the subscriber wants for now; see
    ///     ``Subscription/extend(for:)``.
    ///   - stopsAtOthers: whether a new transfer ends where another one of the key goes on.
    ///   - observation: observes a new transfer; nil for none.
    ///   - didMake: called at once if there was no transfer to join, before its work begins.
    ///   - didEnd: called once the subscription has its outcome, however it ended.
    ///   - work: the work of a new transfer; dropped if there is a transfer to join. If a slot is
    ///     free, it begins on this thread and stays there until it first waits.
    /// - Returns: the subscription. Keep it: releasing it leaves the transfer.
    package func join(
        _ group: TransferGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority = .normal,
        maximumDistance: Int64? = nil,
        horizon: Int64 = .max,
        stopsAtOthers: Bool = false,
        observation: (any TransferObservation)? = nil,
        didMake: () -> Void = {},
        didEnd: @escaping @Sendable () -> Void = {},
        work: @escaping Work
    ) -> Subscription {
        let latch = Latch<Void>(didComplete: didEnd)
        let (join, context, effects) = state.withLock { state in
            let join = state.machine.join(
                group,
                wanting: offset,
                coverage: coverage,
                host: host,
                priority: priority,
                maximumDistance: maximumDistance,
                horizon: horizon,
                stopsAtOthers: stopsAtOthers
            )
            state.latches[join.subscriber] = latch
            if let transfer = join.transfer, join.isNew {
                state.works[transfer] = work
                state.contexts[transfer] = TransferContext(
                    id: transfer,
                    end: join.end,
                    queue: self,
                    observation: observation
                )
            }
            let context = join.transfer.flatMap { state.contexts[$0] }
            return (join, context, Self.effects(of: join.actions, in: &state))
        }
        if join.isNew { didMake() }
        perform(effects, beginningHere: true)
        return Subscription(join, context: context, queue: self, latch: latch)
    }

    /// Subscribes to the transfer that will bring the byte at `offset`, if there is one.
    ///
    /// - Parameters:
    ///   - group: identifies requests that may share a transfer.
    ///   - offset: the first missing byte.
    ///   - priority: the priority of the subscriber.
    ///   - didEnd: called once the subscription has its outcome, however it ended.
    /// - Returns: the subscription; nil if there is no transfer to join.
    package func joinUnderWay(
        _ group: TransferGroup,
        wanting offset: Int64,
        priority: RequestPriority,
        didEnd: @escaping @Sendable () -> Void = {}
    ) -> Subscription? {
        let latch = Latch<Void>(didComplete: didEnd)
        let joined = state.withLock { state in
            let join = state.machine.joinUnderWay(group, wanting: offset, priority: priority)
            return join.map { join in
                state.latches[join.subscriber] = latch
                let context = join.transfer.flatMap { state.contexts[$0] }
                return (join, context, Self.effects(of: join.actions, in: &state))
            }
        }
        guard let (join, context, effects) = joined else { return nil }
        perform(effects)
        return Subscription(join, context: context, queue: self, latch: latch)
    }

    /// Starts no new transfer until ``resume()``; started ones continue.
    package func suspend() {
        state.withLock { $0.machine.suspend() }
    }

    /// Reverts ``suspend()``.
    package func resume() {
        decide { $0.resume() }
    }

    /// Ends a transfer for all its subscribers.
    package func cancel(_ transfer: TransferID) {
        decide { $0.cancel(transfer) }
    }

    /// Ends every transfer for all its subscribers; new ones may join afterwards.
    package func cancelAll() {
        decide { $0.cancelAll() }
    }

    /// Ends every transfer, refuses subscribers from now on, and waits until all work has returned.
    package func shutdown() async {
        decide { $0.shutDown() }
        // Nil if this task is cancelled: then it does not wait, but the shutdown goes on.
        _ = await drained.wait()
    }

    private func decide(
        _ input: (inout RequestQueueStateMachine) -> [RequestQueueStateMachine.Action]
    ) {
        let effects = state.withLock { state in
            let actions = input(&state.machine)
            return Self.effects(of: actions, in: &state)
        }
        perform(effects)
    }

    private static func effects(
        of actions: [RequestQueueStateMachine.Action],
        in state: inout State,
        result: Latch<Void>.Outcome = .success(())
    ) -> [Effect] {
        actions.compactMap { action in
            switch action {
            case .start(let transfer):
                guard let context = state.contexts[transfer],
                    let work = state.works.removeValue(forKey: transfer)
                else { preconditionFailure("\(transfer) starts without work") }
                return .start(context, work)
            case .grant(let transfer):
                return state.contexts[transfer].map(Effect.grant)
            case .pause(let transfer):
                return state.contexts[transfer].map(Effect.pause)
            case .cancel(let transfer):
                return state.contexts[transfer].map(Effect.cancel)
            case .drop(let transfer):
                return .drop(
                    state.works.removeValue(forKey: transfer),
                    state.contexts.removeValue(forKey: transfer)
                )
            case .complete(let subscriber, let completion):
                let outcome = completion.outcome(result)
                return state.latches.removeValue(forKey: subscriber)
                    .map { Effect.complete($0, outcome) }
            case .drained:
                return .drained
            }
        }
    }

    private func perform(_ effects: [Effect], beginningHere: Bool = false) {
        for effect in effects {
            switch effect {
            case .start(let context, let work):
                start(context, work: work, beginsHere: beginningHere)
            case .grant(let context): context.grant()
            case .pause(let context): context.pause()
            case .cancel(let context): context.cancel()
            // Released with `effects`, outside the lock.
            case .drop: break
            case .complete(let latch, let outcome): latch.complete(with: outcome)
            case .drained: drained.complete(with: .success(()))
            }
        }
    }

    /// Starts a transfer's work in a task that prefers the queue's executor.
    ///
    /// - Parameters:
    ///   - context: the transfer.
    ///   - work: its work.
    ///   - beginsHere: whether it may begin on this thread, which saves a change of thread until
    ///     it first waits, usually for the origin's response.
    private func start(_ context: TransferContext, work: @escaping Work, beginsHere: Bool) {
        let run: @Sendable () async -> Void = {
            // A cancellation before the work began wins (invariant 11).
            let result = context.isCancelled ? .failure(.leftTransfer) : await work(context)
            self.didFinish(context.id, with: result)
        }
        if beginsHere, #available(macOS 26, iOS 26, tvOS 26, visionOS 26, watchOS 26, *) {
            // One of the queue's own need not be left: a task that wants to would come back to it,
            // as it is the one that is awake, for ever.
            if let threads, !threads.isCurrent { context.beginOnCallersThread() }
            context.attach(Task.immediate(executorPreference: executor, operation: run))
        } else {
            context.attach(Task(executorPreference: executor, operation: run))
        }
    }
}

extension RequestQueueStateMachine.Completion {
    fileprivate func outcome(_ result: Latch<Void>.Outcome) -> Latch<Void>.Outcome {
        switch self {
        case .finished: result
        case .cancelled: .failure(.leftTransfer)
        case .busy: .failure(.queueBusy)
        case .shutDown: .failure(.queueShutDown)
        }
    }
}

// Calls from subscriptions and contexts.
extension RequestQueue {
    func leave(_ subscriber: SubscriberID) {
        decide { $0.leave(subscriber) }
    }

    /// Leaves if the transfer still waits for a slot.
    func leaveIfWaiting(_ subscriber: SubscriberID) {
        decide { $0.isWaiting(subscriber) ? $0.leave(subscriber, with: .busy) : [] }
    }

    func isWaiting(_ subscriber: SubscriberID) -> Bool {
        state.withLock { $0.machine.isWaiting(subscriber) }
    }

    func setPriority(_ priority: RequestPriority, of subscriber: SubscriberID) {
        decide { $0.setPriority(priority, of: subscriber) }
    }

    func extend(_ subscriber: SubscriberID, for range: Range<Int64>) -> Bool {
        state.withLock { $0.machine.extend(subscriber, for: range) }
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

    func giveUp(_ transfer: TransferID) -> Bool {
        state.withLock { $0.machine.giveUp(transfer) }
    }

    func hasPassed(_ offset: Int64, _ transfer: TransferID) -> Bool {
        state.withLock { $0.machine.hasPassed(offset, transfer) }
    }

    func isWanted(_ transfer: TransferID) -> Bool {
        state.withLock { $0.machine.isWanted(transfer) }
    }

    func isAhead(of transfer: TransferID, before end: Int64) -> Bool {
        state.withLock { $0.machine.isAhead(of: transfer, before: end) }
    }

    func priority(of subscriber: SubscriberID) -> RequestPriority {
        state.withLock { $0.machine.subscribers[subscriber]?.priority ?? .background }
    }

    func priority(of transfer: TransferID) -> RequestPriority {
        state.withLock { $0.machine.transfers[transfer]?.priorities.highest ?? .background }
    }

    func didAdvance(_ transfer: TransferID, to position: Int64) -> Bool {
        state.withLock { state in
            state.machine.didAdvance(transfer, to: position)
            return state.machine.isWanted(transfer)
        }
    }

    func linger(_ transfer: TransferID, for amount: Int64) {
        state.withLock { $0.machine.linger(transfer, for: amount) }
    }

    /// Whether the transfer has no subscriber left to notify of its end.
    func isAbandoned(_ transfer: TransferID) -> Bool {
        state.withLock { $0.machine.transfers[transfer]?.subscribers.isEmpty ?? true }
    }

    func lingeringEnd(of transfer: TransferID) -> Int64? {
        state.withLock { $0.machine.transfers[transfer]?.lingeringEnd }
    }

    func restart(_ transfer: TransferID, at offset: Int64) {
        state.withLock { $0.machine.didRestart(transfer, at: offset) }
    }

    func shrinkCoverage(of transfer: TransferID, to end: Int64) {
        state.withLock { $0.machine.shrinkCoverage(of: transfer, to: end) }
    }

    func move(_ transfer: TransferID, to group: TransferGroup) {
        state.withLock { $0.machine.move(transfer, to: group) }
    }

    func extendCoverage(of transfer: TransferID, to end: Int64) {
        state.withLock { $0.machine.extendCoverage(of: transfer, to: end) }
    }

    func didStall(_ transfer: TransferID) {
        decide { $0.didStall(transfer) }
    }

    func didUnstall(_ transfer: TransferID) {
        decide { $0.didUnstall(transfer) }
    }

    private func didFinish(_ transfer: TransferID, with result: Result<Void, CacheError>) {
        let (effects, context) = state.withLock { state in
            let actions = state.machine.didFinish(transfer)
            let context = state.contexts.removeValue(forKey: transfer)
            return (Self.effects(of: actions, in: &state, result: result), context)
        }
        // It may own the last reference to an entry.
        withExtendedLifetime(context) { perform(effects) }
    }
}
