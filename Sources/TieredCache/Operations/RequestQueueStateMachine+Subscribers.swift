extension RequestQueueStateMachine {
    /// Subscribes to the transfer that will bring the byte at `offset`, or makes one.
    ///
    /// - Parameters:
    ///   - group: what the transfer must agree with.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - coverage: what a new transfer would bring; holds `offset`. `..<Int64.max` where no end
    ///     is known.
    ///   - host: whose slots a new transfer uses.
    ///   - priority: the subscriber's.
    ///   - maximumDistance: how many bytes a transfer may be away from `offset`; nil for any
    ///     number.
    /// - Returns: the subscriber and its transfer; what is to be done.
    package mutating func join(
        _ group: TransferGroup,
        wanting offset: Int64,
        coverage: Range<Int64>,
        host: String,
        priority: RequestPriority,
        maximumDistance: Int64? = nil
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
            return join(id, subscriber, priority: priority)
        }
        let id = makeTransfer(group, coverage: coverage, host: host)
        add(subscriber, priority: priority, to: id)
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
    ///   - group: what the transfer must agree with.
    ///   - offset: the first byte that the subscriber lacks.
    ///   - priority: the subscriber's.
    /// - Returns: the subscriber and its transfer; nil if no transfer will bring the byte.
    package mutating func joinUnderWay(
        _ group: TransferGroup,
        wanting offset: Int64,
        priority: RequestPriority
    ) -> Join? {
        guard !isShutDown,
            let id = joinableTransfer(group, wanting: offset, maximumDistance: nil)
        else { return nil }
        return join(id, makeSubscriberID(), priority: priority)
    }

    private mutating func join(
        _ id: TransferID,
        _ subscriber: SubscriberID,
        priority: RequestPriority
    ) -> Join {
        add(subscriber, priority: priority, to: id)
        let actions = makeRoom(for: id)
        return Join(
            subscriber: subscriber,
            transfer: id,
            isNew: false,
            end: transfers[id]?.coverage.upperBound ?? .max,
            actions: actions
        )
    }

    /// A subscriber is no longer interested; the last one to leave cancels the transfer.
    package mutating func leave(_ subscriber: SubscriberID) -> [Action] {
        guard
            let (transfer, priority) = subscribers.removeValue(forKey: subscriber).map({
                ($0.transfer, $0.priority)
            })
        else {
            return []
        }
        transfers[transfer]?.subscribers.remove(subscriber)
        transfers[transfer]?.priorities.remove(priority)
        let actions = [Action.complete(subscriber, .cancelled)]
        guard transfers[transfer]?.subscribers.isEmpty == true else {
            didChangePriorities(of: transfer)
            return actions
        }
        return actions + abandon(transfer)
    }

    /// A subscriber has become more or less urgent; ignored once it has ended.
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

    /// Ends every transfer and refuses joiners from now on.
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
                && offset - transfer.position <= maximumDistance ?? .max
        }
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
        to transfer: TransferID
    ) {
        subscribers[subscriber] = Subscriber(transfer: transfer, priority: priority)
        transfers[transfer]?.subscribers.insert(subscriber)
        transfers[transfer]?.lingeringEnd = nil
        transfers[transfer]?.priorities.add(priority)
        didChangePriorities(of: transfer)
    }

    private mutating func didChangePriorities(of id: TransferID) {
        guard let transfer = transfers[id], transfer.isWaiting else { return }
        waiting.move(id, to: transfer.priorities.highest)
    }

    private mutating func endAll(with completion: Completion) -> [Action] {
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

    /// Nobody wants the transfer any more: it leaves the map at once, and the queue or, if it has
    /// started, its work is cancelled and keeps its slot until it has returned.
    private mutating func abandon(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        removeFromGroup(id, transfer.group)
        waiting.remove(id)
        guard transfer.state != .queued else {
            transfers[id] = nil
            return [.drop(id)]
        }
        transfers[id]?.state = .cancelled(transfer.occupancy)
        return [.cancel(id)]
    }

    mutating func removeFromGroup(_ id: TransferID, _ group: TransferGroup) {
        groups[group]?.removeAll { $0 == id }
        if groups[group]?.isEmpty == true { groups[group] = nil }
    }
}
