// Who wants which bytes of the resource, and which transfer brings them. A queue is asked under the
// lock, so that it never hears of the end of a transfer before its beginning; what it has decided is
// performed behind it. Order of locks: this one, then that of the queue or of a transfer.
extension SharedTransfers {
    /// A request for the bytes from an offset on.
    struct Demand {
        /// Identifies requests that may share a transfer.
        let group: TransferGroup
        /// The first missing byte.
        let offset: Int64
        /// A number that no other one of the cache has; a later one has a higher one.
        let number: UInt64
        var want: ResourceState.Want
        /// The maximum number of bytes between a transfer's position and `offset`; nil for no limit.
        var maximumDistance: Int64?
    }

    /// A transfer that a request begins, if there is none to join.
    struct NewTransfer {
        let queue: RequestQueue
        /// The host that it counts against.
        let host: String
        /// The bytes that it would bring, `..<Int64.max` if the end is unknown; contains the wanted
        /// one.
        let coverage: Range<Int64>
        /// Whether it ends where another one of the resource goes on.
        var stopsAtOthers = false
        /// Observes it; nil for none.
        var observation: (any TransferObservation)?
        /// Called at once, before its work begins.
        var didMake: () -> Void = {}
        /// Its work; if a slot is free, it begins on this thread and stays there until it first
        /// waits.
        let work: RequestQueue.Work
    }

    /// Subscribes to the transfer that will bring a byte, or starts one.
    ///
    /// Bytes before a transfer's position have been delivered: read the stored bytes first, then
    /// join at the first missing one. Between the two a transfer may pass that byte; the work of a
    /// new transfer should therefore begin with a look at the bytes stored by then.
    ///
    /// - Parameters:
    ///   - demand: what is wanted.
    ///   - new: the transfer to start.
    /// - Returns: the subscription. Keep it: releasing it leaves the transfer.
    func join(_ demand: Demand, orStart new: NewTransfer) -> Subscription {
        let (joined, isFirst) = change { state in
            if let joined = state.join(demand) { return (joined, false) }
            return (state.begin(demand, new, of: self), true)
        }
        guard let effects = joined.effects else {
            didEndTransfer()
            return subscription(of: demand, to: joined, isFirst: false)
        }
        if isFirst { new.didMake() }
        joined.context.queue.perform(effects, beginningHere: isFirst)
        return subscription(of: demand, to: joined, isFirst: isFirst)
    }

    /// Subscribes to the transfer that will bring a byte; nil if there is none.
    func joinUnderWay(_ demand: Demand) -> Subscription? {
        guard let joined = change({ $0.join(demand) }) else { return nil }
        joined.context.queue.perform(joined.effects ?? [])
        return subscription(of: demand, to: joined, isFirst: false)
    }

    /// Changes the record, and wakes the transfers that go on after it.
    private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let (result, resumes) = state.withLock { state in
            let before = state.resource.paused.count
            let result = body(&state)
            return (result, state.resource.paused.count < before)
        }
        // Only then, or a reader that waits for the signal would wake itself.
        if resumes { signal.bump() }
        return result
    }

    private func subscription(
        of demand: Demand,
        to joined: State.Joined,
        isFirst: Bool
    )
        -> Subscription
    {
        Subscription(
            SubscriberID(number: demand.number),
            to: joined.effects == nil ? nil : joined.context,
            isFirst: isFirst,
            end: joined.end,
            of: self
        )
    }

    // MARK: Calls of subscriptions

    /// Ends a subscription; ignored if it has ended.
    func leave(_ subscriber: SubscriberID) {
        didLeave(state.withLock { $0.leave(subscriber, with: .leftTransfer) })
    }

    /// Ends a subscription that nobody refers to any more, unless it lingers.
    func release(_ subscriber: SubscriberID) {
        let (left, outcome) = state.withLock { state in
            let left = state.leave(subscriber, with: .leftTransfer)
            return (left, state.resource.forget(subscriber))
        }
        withExtendedLifetime(outcome) { didLeave(left) }
    }

    /// Lets subscriptions whose reader has left stay for ``ResourceState/lingeringLimit``.
    func linger(_ subscriptions: [Subscription], by time: any TimeSource) {
        let staying = change { state in
            subscriptions.compactMap { state.resource.linger($0.id) }
        }
        guard !staying.isEmpty else { return }
        _ = time.alarm(after: ResourceState.lingeringLimit) { [weak self] in
            guard let self else { return }
            for stay in staying { didLeave(state.withLock { $0.end(stay) }) }
        }
    }

    /// Leaves with ``CacheError/Code/busy`` if the transfer still waits for a slot, unless it gets one
    /// at this instant.
    func leaveIfWaiting(_ subscriber: SubscriberID) {
        let left = state.withLock { state -> (TransferContext, [RequestQueue.Effect])? in
            let transfer = state.resource.transfer(of: subscriber)
            guard let context = transfer.flatMap({ state.contexts[$0] }), context.isWaiting
            else { return nil }
            return state.leave(subscriber, with: .queueBusy)
        }
        didLeave(left)
    }

    private func didLeave(_ left: (TransferContext, [RequestQueue.Effect])?) {
        guard let (context, effects) = left else { return }
        didEndTransfer()
        context.queue.perform(effects)
    }

    func priority(of subscriber: SubscriberID) -> RequestPriority {
        state.withLock { $0.resource.priority(of: subscriber) }
    }

    func setPriority(_ priority: RequestPriority, of subscriber: SubscriberID) {
        let changed = state.withLock { state -> (TransferContext, [RequestQueue.Effect])? in
            let transfer = state.resource.setPriority(priority, of: subscriber)
            return transfer.flatMap { state.contexts[$0] }.map {
                ($0, state.forwardPriority(to: $0))
            }
        }
        if let (context, effects) = changed { context.queue.perform(effects) }
    }

    func extend(_ subscriber: SubscriberID, for range: Range<Int64>) -> Bool {
        change { $0.resource.extend(subscriber, for: range) }
    }

    func outcome(of subscriber: SubscriberID) -> Result<Void, CacheError>? {
        state.withLock { $0.resource.outcome(of: subscriber) }
    }

    // MARK: Calls of readers

    /// Registers a reader.
    ///
    /// - Parameters:
    ///   - position: its position in the body.
    ///   - transfer: the transfer that brings the bytes there, if there is one.
    ///   - reports: the reports of the operation that it belongs to.
    ///   - now: the time.
    /// - Returns: its number; end with ``leave(_:)-(ReaderID)``.
    func enter(
        at position: Int64,
        of transfer: TransferID?,
        reports: RequestReports? = nil,
        now: MonotonicTime
    ) -> ReaderID {
        state.withLock { state in
            let reader = state.resource.enter(at: position, of: transfer, now: now)
            if let reports { state.reports[reader] = reports }
            return reader
        }
    }

    /// A reader has come to `position`, and waits there for a transfer if one is named.
    func didRead(
        _ reader: ReaderID,
        to position: Int64,
        waitingFor transfer: TransferID? = nil,
        now: MonotonicTime
    ) {
        change { $0.resource.didRead(reader, to: position, waitingFor: transfer, now: now) }
    }

    func leave(_ reader: ReaderID) {
        let reports = state.withLock { state in
            state.resource.leave(reader)
            return state.reports.removeValue(forKey: reader)
        }
        withExtendedLifetime(reports) {}
    }

    // MARK: Calls of transfers

    /// A transfer has ended, or a subscription to one.
    ///
    /// It may have stored the last byte for readers that it was not started for: nothing else ends
    /// the reports of their operations.
    private func didEndTransfer() {
        signal.bump()
        let reports = state.withLock { Array($0.reports.values) }
        for reports in reports { reports.endIfDone() }
    }

    /// Waits as long as a transfer has a reason to pause, until `limit` has passed, or until the
    /// task is cancelled.
    func pause(
        _ transfer: TransferID,
        _ pause: ResourceState.Pause,
        atMost limit: Duration? = nil,
        by time: any TimeSource
    ) async {
        let now = time.monotonicTime()
        state.withLock { $0.resource.pause(transfer, pause, now: now) }
        let alarm = limit.map { limit in
            time.alarm(after: limit) { [weak self] in self?.change { $0.resource.resume(transfer) }
            }
        }
        defer {
            alarm?.cancel()
            state.withLock { $0.resource.resume(transfer) }
        }
        await signal.wait { state.withLock { $0.resource.paused[transfer] != nil } }
    }

    /// Changes a transfer, or looks at it; nil if it has ended or has no subscriber.
    func update<Result: Sendable>(
        _ transfer: TransferID,
        _ body: (inout ResourceState.Transfer) -> Result
    ) -> Result? {
        state.withLock { $0.resource.update(transfer, body) }
    }

    /// A transfer has delivered all bytes before `position`.
    ///
    /// - Returns: whether a subscriber wants more by now, and whether all readers have stopped.
    func didAdvance(
        _ transfer: TransferID,
        to position: Int64,
        now: MonotonicTime
    ) -> (isWanted: Bool, haveReadersStopped: Bool) {
        state.withLock { state in
            let isWanted = state.resource.update(transfer) { transfer in
                transfer.didAdvance(to: position)
                return transfer.isWanted
            }
            return (isWanted ?? true, state.resource.haveReadersStopped(transfer, now: now))
        }
    }

    /// Whether another transfer, which its readers may join, goes on within stored bytes that end at
    /// `end` and that this one has come to.
    func isBehindAnother(_ transfer: TransferID, before end: Int64) -> Bool {
        state.withLock { state in
            // One that has not started has to wait for a slot, which this one has.
            state.resource.transfers(aheadOf: transfer, before: end)
                .contains { state.contexts[$0]?.hasStarted ?? false }
        }
    }

    /// The work of a transfer has returned.
    func didFinish(_ context: TransferContext, with result: Result<Void, CacheError>) {
        let effects = state.withLock { state in
            state.resource.end(context.id, with: result)
            state.contexts[context.id] = nil
            return context.queue.finish(context.id)
        }
        didEndTransfer()
        context.queue.perform(effects)
    }

    /// Ends every transfer for all its subscribers; new ones may join afterwards.
    ///
    /// - Returns: what is to be performed by ``didCancelAll(_:)``, once the other resources have done
    ///   the same: what has a slot must not leave it to what is ended next.
    func cancelAll(
        with error: CacheError = .leftTransfer
    ) -> [(TransferContext, [RequestQueue.Effect])] {
        state.withLock { state in
            // Sorted: the order of a dictionary is another one in each process.
            state.resource.transfers.keys.sorted().compactMap { id in
                state.resource.end(id, with: .failure(error))
                return state.contexts.removeValue(forKey: id).map { ($0, $0.queue.cancel(id)) }
            }
        }
    }

    func didCancelAll(_ cancelled: [(TransferContext, [RequestQueue.Effect])]) {
        guard !cancelled.isEmpty else { return }
        didEndTransfer()
        for (context, effects) in cancelled { context.queue.perform(effects) }
    }
}

extension SharedTransfers.State {
    /// A transfer with a new subscriber, and what is to be performed; nil if the queue refuses it.
    fileprivate typealias Joined = (
        context: TransferContext, end: Int64, effects: [RequestQueue.Effect]?
    )

    fileprivate mutating func join(_ demand: SharedTransfers.Demand) -> Joined? {
        let transfer = resource.join(
            demand.group,
            wanting: demand.offset,
            as: SubscriberID(number: demand.number),
            demand.want,
            within: demand.maximumDistance
        )
        guard let transfer, let context = contexts[transfer],
            let end = resource.transfers[transfer]?.coverage.upperBound
        else { return nil }
        return (context, end, forwardPriority(to: context))
    }

    fileprivate mutating func begin(
        _ demand: SharedTransfers.Demand,
        _ new: SharedTransfers.NewTransfer,
        of shared: SharedTransfers
    ) -> Joined {
        let id = TransferID(number: demand.number)
        let end = resource.begin(
            id,
            of: demand.group,
            wanting: demand.offset,
            coverage: new.coverage,
            stopsAtOthers: new.stopsAtOthers,
            as: SubscriberID(number: demand.number),
            demand.want
        )
        let context = TransferContext(
            id: id,
            end: end,
            of: shared,
            in: new.queue,
            observation: new.observation,
            work: new.work
        )
        let priority = demand.want.priority
        let effects = new.queue.enter(context, host: new.host, priority: priority)
        if effects == nil {
            resource.end(id, with: .failure(.queueShutDown))
        } else {
            contexts[id] = context
        }
        return (context, end, effects)
    }

    /// Ends a subscription; the transfer of the last one is cancelled.
    fileprivate mutating func leave(
        _ subscriber: SubscriberID,
        with error: CacheError
    ) -> (TransferContext, [RequestQueue.Effect])? {
        didLeave(resource.leave(subscriber, with: error))
    }

    fileprivate mutating func end(
        _ stay: ResourceState.Stay
    ) -> (TransferContext, [RequestQueue.Effect])? {
        didLeave(resource.end(stay))
    }

    private mutating func didLeave(
        _ departure: ResourceState.Departure
    ) -> (TransferContext, [RequestQueue.Effect])? {
        switch departure {
        case .none:
            return nil
        case .left(let id, let priority):
            return contexts[id].map { context in
                (context, priority == nil ? [] : forwardPriority(to: context))
            }
        case .last(let id):
            return contexts.removeValue(forKey: id).map { ($0, $0.queue.cancel(id)) }
        }
    }

    /// Tells a transfer's queue its priority.
    fileprivate func forwardPriority(to context: TransferContext) -> [RequestQueue.Effect] {
        let priority = resource.transfers[context.id]?.priority ?? .background
        return context.queue.setPriority(priority, of: context.id)
    }
}
