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

    /// Whether another transfer, which requests for the same bytes join, goes on within stored bytes
    /// that end at `end` and that this one has come to.
    package func isAhead(of id: TransferID, before end: Int64) -> Bool {
        guard let transfer = transfers[id] else { return false }
        return (groups[transfer.group] ?? []).contains { other in
            // One that has not started has to wait for a slot, which this one has.
            guard other != id, let other = transfers[other], other.state != .queued
            else { return false }
            return transfer.position < other.position && other.position <= end
                && other.position < other.coverage.upperBound
        }
    }

    /// The start of the next bytes after `offset` that a transfer for a key, in any group, is yet to
    /// store.
    func nextPosition(after offset: Int64, of key: CacheKey) -> Int64? {
        var next: Int64?
        for transfer in transfers.values where transfer.group.key == key {
            if case .cancelled = transfer.state { continue }
            guard transfer.position > offset, transfer.position < transfer.coverage.upperBound
            else {
                continue
            }
            // It stores the block that it is in, if it began with it.
            let block = BlockTable.extent(around: transfer.position).lowerBound
            let start = max(block, transfer.coverage.lowerBound)
            next = min(next ?? .max, start > offset ? start : transfer.position)
        }
        return next
    }

    /// The transfer's subscriber has left, but stays for `amount` more bytes, and the rest of the
    /// last block or of the transfer, if that costs less than another request; ignored if there are
    /// other subscribers.
    package mutating func linger(_ id: TransferID, for amount: Int64) {
        guard let transfer = transfers[id], transfer.subscribers.count == 1 else { return }
        let (sum, overflow) = transfer.position.addingReportingOverflow(amount)
        let upper = transfer.coverage.upperBound
        let isRestShort = !overflow && upper - sum <= Self.bridge
        transfers[id]?.lingeringEnd =
            overflow ? .max : isRestShort ? max(sum, upper) : Self.blockEnd(atOrBehind: sum)
        // The block that it is in would be lost; at the end of one it is in none.
        let blockEnd = Self.blockEnd(atOrBehind: transfer.position)
        transfers[id]?.horizon = max(transfer.horizon, blockEnd)
    }

    /// The end of the block that holds the byte before `offset`.
    private static func blockEnd(atOrBehind offset: Int64) -> Int64 {
        BlockTable.extent(around: max(0, offset - 1)).upperBound
    }

    /// The transfer brings what fewer requests want than its group says: from now on those of another
    /// group join it.
    package mutating func move(_ id: TransferID, to group: TransferGroup) {
        guard let old = transfers[id]?.group, groups[old]?.contains(id) == true else { return }
        remove(id, from: old)
        transfers[id]?.group = group
        groups[group, default: []].append(id)
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
