extension RequestQueueStateMachine {
    /// Adds a transfer; it starts as soon as there is a slot for it.
    ///
    /// - Parameters:
    ///   - id: a number that no other one has, nor will have. Of two the higher one is the newer.
    ///   - host: the host that it counts against.
    ///   - resource: what it brings bytes of; each resource has its share of the slots.
    ///   - priority: the highest priority of a request that it is for.
    /// - Returns: the actions to perform; nil if the queue is shut down.
    package mutating func enter(
        _ id: TransferID,
        host: String,
        resource: ObjectIdentifier,
        priority: RequestPriority
    ) -> [Action]? {
        guard !isShutDown else { return nil }
        let transfer = Transfer(host: host, resource: resource, priority: priority)
        transfers[id] = transfer
        wait(id, transfer)
        return fillSlots() + makeRoom(for: id)
    }

    /// Sets the highest priority of a request that a transfer is for; ignored once it is cancelled.
    package mutating func setPriority(
        _ priority: RequestPriority,
        of id: TransferID
    ) -> [Action] {
        guard let old = transfers[id]?.line else {
            transfers[id]?.priority = priority
            return []
        }
        transfers[id]?.priority = priority
        if let new = transfers[id]?.line { waiting.move(id, from: old, to: new) }
        return makeRoom(for: id)
    }

    private mutating func wait(_ id: TransferID, _ transfer: Transfer) {
        guard let line = transfer.line else { return }
        waiting.insert(id, in: line, resource: transfer.resource)
    }

    /// Ends a transfer that no request wants any more.
    ///
    /// A queued one leaves the queue; the work of a started one is cancelled and keeps its slot
    /// until it returns.
    package mutating func cancel(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        if case .cancelled = transfer.state { return [] }
        if let line = transfer.line { waiting.remove(id, from: line) }
        guard transfer.state != .queued else {
            transfers[id] = nil
            return [.drop(id)] + drainedIfIdle()
        }
        transfers[id]?.state = .cancelled(transfer.occupancy)
        transfers[id]?.priority = .background
        return [.cancel(id)]
    }

    /// Whether a transfer waits for a slot.
    package func isWaiting(_ id: TransferID) -> Bool { transfers[id]?.isWaiting ?? false }

    /// The origin has begun to respond.
    package mutating func didRespond(_ id: TransferID) { transfers[id]?.hasResponded = true }

    /// Whether one more transfer may keep its connection for readers that want no more for now: as
    /// many as have slots.
    ///
    /// Those that were preempted, whose readers have stopped, or that compare a body count nowhere:
    /// none of them would end for it.
    package var mayKeepConnection: Bool {
        transfers.values.count {
            $0.isPaused && ($0.state == .stalled || $0.state == .resuming)
        } < limits.maximumDownloads
    }

    /// The transfer releases its slot and keeps its connection; nil if too many do.
    package mutating func stallIfRoom(_ id: TransferID) -> [Action]? {
        guard mayKeepConnection else { return nil }
        transfers[id]?.isPaused = true
        return didStall(id)
    }

    /// All consumers of the transfer have stopped reading: its slot becomes free.
    package mutating func didStall(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id], transfer.state == .running else { return [] }
        transfers[id]?.state = .stalled
        release(transfer)
        return fillSlots()
    }

    /// A consumer reads again: the transfer waits for a slot, ahead of those that have not started.
    package mutating func didUnstall(_ id: TransferID) -> [Action] {
        guard var transfer = transfers[id] else { return [] }
        switch transfer.state {
        case .stalled, .yielded:
            release(transfer)
            transfer.state = .resuming
            transfers[id] = transfer
            wait(id, transfer)
            return fillSlots() + makeRoom(for: id)
        case .running:
            return [.grant(id)]
        case .resuming, .cancelled:
            return []
        case .queued:
            preconditionFailure("\(id) resumed before it started")
        }
    }

    /// The transfer's work has returned.
    package mutating func didFinish(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        precondition(transfer.state != .queued, "\(id) finished before it started")
        if let line = transfer.line { waiting.remove(id, from: line) }
        transfers[id] = nil
        release(transfer)
        return fillSlots() + drainedIfIdle()
    }

    /// Refuses transfers from now on; those that are here are to be cancelled.
    package mutating func shutDown() -> [Action] {
        isShutDown = true
        return drainedIfIdle()
    }

    /// Starts no new transfer until ``resume()``; started ones continue, also after a stall.
    package mutating func suspend() {
        isSuspended = true
    }

    /// Reverts ``suspend()``.
    package mutating func resume() -> [Action] {
        isSuspended = false
        return fillSlots()
    }
}
