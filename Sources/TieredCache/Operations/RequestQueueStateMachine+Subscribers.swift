extension RequestQueueStateMachine {
    /// Subscribes to the transfer that will bring the byte at `offset`, or starts one.
    ///
    /// - Parameters:
    ///   - group: identifies requests that may share a transfer.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - coverage: the bytes that a new transfer would bring; contains `offset`. `..<Int64.max`
    ///     if the end is unknown.
    ///   - host: the host that a new transfer counts against.
    ///   - priority: the priority of the subscriber.
    ///   - maximumDistance: the maximum number of bytes between a transfer's position and `offset`;
    ///     nil for no limit.
    ///   - horizon: the end of the bytes that the subscriber wants for now.
    ///   - stopsAtOthers: whether a new transfer ends where another one of the key goes on.
    /// - Returns: the subscriber and its transfer, with the actions to perform.
    package mutating func join(
        _ group: TransferGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority,
        maximumDistance: Int64? = nil,
        horizon: Int64 = .max,
        stopsAtOthers: Bool = false
    ) -> Join {
        let subscriber = makeSubscriberID()
        guard !isShutDown else {
            let actions = [Action.complete(subscriber, .shutDown)]
            return Join(
                subscriber: subscriber,
                transfer: nil,
                isNew: false,
                end: coverage.upperBound,
                actions: actions
            )
        }
        if let id = joinableTransfer(group, wanting: offset, maximumDistance: maximumDistance) {
            return join(id, as: subscriber, priority: priority, horizon: horizon)
        }
        var coverage = coverage
        if stopsAtOthers, let next = nextPosition(after: offset, of: group.key) {
            // Whole blocks, as only those are stored.
            let end = BlockTable.extent(around: next - 1).upperBound
            coverage = coverage.lowerBound..<min(coverage.upperBound, end)
        }
        let id = makeTransfer(group, coverage: coverage, host: host)
        add(subscriber, priority: priority, horizon: horizon, to: id)
        waiting.insert(id, kind: .queued, host: host, priority: priority)
        let actions = fillSlots() + makeRoom(for: id)
        return Join(
            subscriber: subscriber,
            transfer: id,
            isNew: true,
            end: coverage.upperBound,
            actions: actions
        )
    }

    /// Subscribes to the transfer that will bring the byte at `offset`, if there is one.
    ///
    /// - Parameters:
    ///   - group: identifies requests that may share a transfer.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - priority: the priority of the subscriber.
    /// - Returns: the subscriber and its transfer; nil if no transfer will bring the byte.
    package mutating func joinUnderWay(
        _ group: TransferGroup,
        wanting offset: Int64,
        priority: RequestPriority
    ) -> Join? {
        guard !isShutDown,
            let id = joinableTransfer(group, wanting: offset, maximumDistance: nil)
        else { return nil }
        return join(id, as: makeSubscriberID(), priority: priority, horizon: .max)
    }

    private mutating func join(
        _ id: TransferID,
        as subscriber: SubscriberID,
        priority: RequestPriority,
        horizon: Int64
    ) -> Join {
        add(subscriber, priority: priority, horizon: horizon, to: id)
        let actions = makeRoom(for: id)
        return Join(
            subscriber: subscriber,
            transfer: id,
            isNew: false,
            end: transfers[id]?.coverage.upperBound ?? .max,
            actions: actions
        )
    }

    /// Removes a subscriber; if it was the last one, the transfer is cancelled.
    ///
    /// - Parameters:
    ///   - subscriber: the subscriber.
    ///   - completion: how its subscription ends.
    /// - Returns: the actions to perform.
    package mutating func leave(
        _ subscriber: SubscriberID,
        with completion: Completion = .cancelled
    ) -> [Action] {
        guard
            let (transfer, priority) = subscribers.removeValue(forKey: subscriber).map({
                ($0.transfer, $0.priority)
            })
        else {
            return []
        }
        transfers[transfer]?.subscribers.remove(subscriber)
        transfers[transfer]?.priorities.remove(priority)
        didChangeHorizons(of: transfer)
        let actions = [Action.complete(subscriber, completion)]
        guard transfers[transfer]?.subscribers.isEmpty == true else {
            didChangePriorities(of: transfer)
            return actions
        }
        return actions + abandon(transfer)
    }

    /// Whether the transfer of a subscriber waits for a slot.
    package func isWaiting(_ subscriber: SubscriberID) -> Bool {
        subscribers[subscriber].flatMap { transfers[$0.transfer]?.isWaiting } ?? false
    }

    /// A subscriber wants more of its transfer's bytes by now.
    ///
    /// - Parameters:
    ///   - subscriber: the subscriber.
    ///   - range: the bytes; the first one is missing.
    /// - Returns: whether the transfer will bring the first one.
    package mutating func extend(_ subscriber: SubscriberID, for range: Range<Int64>) -> Bool {
        guard let old = subscribers[subscriber], let transfer = transfers[old.transfer],
            // Bytes of the block that the transfer is in are not stored yet, and not lost.
            range.lowerBound >= BlockTable.extent(around: transfer.position).lowerBound,
            range.lowerBound < transfer.coverage.upperBound
        else { return false }
        subscribers[subscriber]?.horizon = max(old.horizon, range.upperBound)
        didChangeHorizons(of: old.transfer)
        return true
    }

    /// A transfer without subscribers keeps its horizon: it is about to end.
    private mutating func didChangeHorizons(of transfer: TransferID) {
        let horizons = transfers[transfer]?.subscribers.compactMap { subscribers[$0]?.horizon }
        if let horizon = horizons?.max() { transfers[transfer]?.horizon = horizon }
    }

    /// Changes the priority of a subscriber; ignored once it has ended.
    package mutating func setPriority(
        _ priority: RequestPriority,
        of subscriber: SubscriberID
    ) -> [Action] {
        guard let old = subscribers[subscriber] else { return [] }
        subscribers[subscriber]?.priority = priority
        transfers[old.transfer]?.priorities.remove(old.priority)
        transfers[old.transfer]?.priorities.add(priority)
        didChangePriorities(of: old.transfer)
        return makeRoom(for: old.transfer)
    }

    /// Ends a transfer for all its subscribers.
    package mutating func cancel(_ transfer: TransferID) -> [Action] {
        end(transfer, with: .cancelled)
    }

    /// Ends every transfer for all its subscribers.
    package mutating func cancelAll() -> [Action] {
        endAll(with: .cancelled)
    }

    /// Ends every transfer and refuses subscribers from now on.
    package mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        return endAll(with: .shutDown) + drainedIfIdle()
    }

    private func joinableTransfer(
        _ group: TransferGroup,
        wanting offset: Int64,
        maximumDistance: Int64?
    ) -> TransferID? {
        let reaching = (groups[group] ?? []).filter { id in
            guard let transfer = transfers[id] else { return false }
            return transfer.position <= offset && offset < transfer.coverage.upperBound
                && transfer.isNear(offset, within: maximumDistance)
        }
        // The one that is furthest has the shortest way to the byte.
        return reaching.max { left, right in
            (transfers[left]?.position ?? 0) < (transfers[right]?.position ?? 0)
        }
    }

    private mutating func makeTransfer(
        _ group: TransferGroup,
        coverage: Range<Int64>,
        host: String
    ) -> TransferID {
        let id = makeTransferID()
        transfers[id] = Transfer(
            group: group,
            host: host,
            coverage: coverage,
            position: coverage.lowerBound
        )
        groups[group, default: []].append(id)
        return id
    }

    private mutating func add(
        _ subscriber: SubscriberID,
        priority: RequestPriority,
        horizon: Int64,
        to transfer: TransferID
    ) {
        subscribers[subscriber] = Subscriber(
            transfer: transfer,
            priority: priority,
            horizon: horizon
        )
        transfers[transfer]?.subscribers.insert(subscriber)
        didChangeHorizons(of: transfer)
        transfers[transfer]?.lingeringEnd = nil
        transfers[transfer]?.priorities.add(priority)
        didChangePriorities(of: transfer)
    }

    private mutating func didChangePriorities(of id: TransferID) {
        guard let transfer = transfers[id], transfer.isWaiting else { return }
        waiting.move(id, to: transfer.priorities.highest)
    }

    private mutating func endAll(with completion: Completion) -> [Action] {
        // Sorted: the order of a dictionary is another one in each process, and seeded tests
        // compare actions.
        transfers.keys.sorted().flatMap { end($0, with: completion) }
    }

    private mutating func end(_ id: TransferID, with completion: Completion) -> [Action] {
        guard let transfer = transfers[id], !transfer.subscribers.isEmpty else { return [] }
        return completeSubscribers(of: id, with: completion) + abandon(id)
    }

    mutating func completeSubscribers(
        of id: TransferID,
        with completion: Completion
    ) -> [Action] {
        guard let leaving = transfers[id]?.subscribers.sorted() else { return [] }
        for subscriber in leaving { subscribers[subscriber] = nil }
        transfers[id]?.subscribers = []
        transfers[id]?.priorities = PriorityCounts()
        return leaving.map { .complete($0, completion) }
    }

    /// Ends a transfer without subscribers: it leaves its group at once.
    ///
    /// A queued one leaves the queue; the work of a started one is cancelled and keeps its slot
    /// until it returns.
    private mutating func abandon(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        remove(id, from: transfer.group)
        waiting.remove(id)
        guard transfer.state != .queued else {
            transfers[id] = nil
            return [.drop(id)]
        }
        transfers[id]?.state = .cancelled(transfer.occupancy)
        return [.cancel(id)]
    }

    mutating func remove(_ id: TransferID, from group: TransferGroup) {
        groups[group]?.removeAll { $0 == id }
        if groups[group]?.isEmpty == true { groups[group] = nil }
    }
}

extension RequestQueueStateMachine.Transfer {
    /// Whether the way to `offset` costs less than another request: few bytes that no other
    /// subscriber wants.
    fileprivate func isNear(_ offset: Int64, within maximumDistance: Int64?) -> Bool {
        guard let maximumDistance else { return true }
        return offset - position <= maximumDistance
            && offset - min(offset, max(position, horizon)) <= RequestQueueStateMachine.bridge
    }
}
