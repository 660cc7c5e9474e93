extension RequestQueueStateMachine {
    /// The transfer has delivered all bytes before `position`.
    package mutating func didAdvance(_ id: TransferID, to position: Int64) {
        guard let old = transfers[id]?.position, position > old else { return }
        transfers[id]?.position = position
        transfers[id]?.hasBytes = true
    }

    /// Whether a subscriber wants more of the transfer's bytes by now.
    package func isWanted(_ id: TransferID) -> Bool {
        guard let transfer = transfers[id] else { return true }
        return transfer.position < transfer.horizon
            || transfer.coverage.upperBound <= max(transfer.horizon, transfer.position)
    }

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

    /// The transfer ends if no subscriber wants more by now; no request joins it then.
    package mutating func giveUp(_ id: TransferID) -> Bool {
        guard !isWanted(id) else { return false }
        shrinkCoverage(of: id, to: 0)
        return true
    }

    /// Whether the transfer has brought the byte at `offset`: if it is missing, it was lost.
    package func hasPassed(_ offset: Int64, _ id: TransferID) -> Bool {
        guard let transfer = transfers[id] else { return false }
        return offset < BlockTable.extent(around: transfer.position).lowerBound
    }

    /// The transfer has restarted with the byte at `offset`, which may lie before its coverage.
    package mutating func didRestart(_ id: TransferID, at offset: Int64) {
        guard let coverage = transfers[id]?.coverage else { return }
        let lower = min(offset, coverage.lowerBound)
        transfers[id]?.coverage = lower..<max(lower, coverage.upperBound)
        transfers[id]?.position = offset
        transfers[id]?.hasBytes = true
    }

    /// The next position after `offset` of a transfer for a key, in any group.
    package func nextPosition(after offset: Int64, of key: CacheKey) -> Int64? {
        var next: Int64?
        for transfer in transfers.values where transfer.group.key == key {
            if case .cancelled = transfer.state { continue }
            guard transfer.position > offset, transfer.position < transfer.coverage.upperBound
            else {
                continue
            }
            next = min(next ?? .max, transfer.position)
        }
        return next
    }

    /// The transfer's subscriber has left, but stays for `amount` more bytes; ignored if there are
    /// other subscribers.
    package mutating func linger(_ id: TransferID, for amount: Int64) {
        guard let transfer = transfers[id], transfer.subscribers.count == 1 else { return }
        let (end, overflow) = transfer.position.addingReportingOverflow(amount)
        transfers[id]?.lingeringEnd = overflow ? .max : end
        // The block that it is in would be lost; at the end of one it is in none.
        let blockEnd = BlockTable.extent(around: max(0, transfer.position - 1)).upperBound
        transfers[id]?.horizon = max(transfer.horizon, blockEnd)
    }

    /// The transfer will deliver nothing at or after `end`; requests for such bytes do not join it.
    package mutating func shrinkCoverage(of id: TransferID, to end: Int64) {
        guard let coverage = transfers[id]?.coverage, end < coverage.upperBound else { return }
        transfers[id]?.coverage = coverage.lowerBound..<max(coverage.lowerBound, end)
    }

    /// The transfer will deliver more than its initial coverage.
    package mutating func extendCoverage(of id: TransferID, to end: Int64) {
        guard let coverage = transfers[id]?.coverage, end > coverage.upperBound else { return }
        transfers[id]?.coverage = coverage.lowerBound..<end
    }

    /// All consumers of the transfer have stopped reading: its slot becomes free.
    package mutating func didStall(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id], transfer.state == .running else { return [] }
        transfers[id]?.state = .stalled
        release(transfer.occupancy, ofHost: transfer.host)
        return fillSlots()
    }

    /// A consumer reads again: the transfer waits for a slot, ahead of those that have not started.
    package mutating func didUnstall(_ id: TransferID) -> [Action] {
        guard let transfer = transfers[id] else { return [] }
        switch transfer.state {
        case .stalled, .yielded:
            transfers[id]?.state = .resuming
            release(transfer.occupancy, ofHost: transfer.host)
            waiting.insert(
                id,
                kind: .resuming,
                host: transfer.host,
                priority: transfer.priorities.highest
            )
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
        let completions = completeSubscribers(of: id, with: .finished)
        remove(id, from: transfer.group)
        waiting.remove(id)
        transfers[id] = nil
        release(transfer.occupancy, ofHost: transfer.host)
        return completions + fillSlots() + drainedIfIdle()
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
