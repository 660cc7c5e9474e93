// Who plays does not wait for those that nobody waits for, nor for origins that do not answer
// (invariant 12).
extension RequestQueueStateMachine {
    /// Gives a slot to a transfer that plays: that of one that nobody waits for, or of one that
    /// waits for its first byte.
    ///
    /// The transfer that nobody waits for is paused: what it has brought stays, and it goes on when
    /// it has a slot again. That happens to a transfer once at most, so that it cannot happen again
    /// and again.
    ///
    /// The transfer that waits for its first byte goes on waiting, and has a slot again when it has
    /// come. It still counts as one of its host's, so that a host that answers nothing gets no more
    /// requests for it, and so many at most do that at once.
    ///
    /// - Parameter id: the transfer; nothing is done unless it plays and waits.
    /// - Returns: what is to be done.
    mutating func makeRoom(for id: TransferID) -> [Action] {
        guard let transfer = transfers[id], transfer.isWaiting,
            transfer.priorities.highest == .playing, transfer.state == .resuming || !isSuspended
        else { return [] }
        if let loser = loser(to: transfer), let loserTransfer = transfers[loser] {
            transfers[loser]?.state = .stalled
            transfers[loser]?.wasPreempted = true
            release(loserTransfer.occupancy, ofHost: loserTransfer.host)
            return [.pause(loser)] + fillSlots()
        }
        guard let yielder = yielder(to: transfer) else { return [] }
        transfers[yielder]?.state = .yielded
        slotsInUse -= 1
        slotsYielded += 1
        return [.pause(yielder)] + fillSlots()
    }

    private func isFull(_ host: String) -> Bool {
        placesInUseByHost[host, default: 0] >= limits.maximumPerHost
    }

    /// Of the transfers whose slot would do, the least urgent; the youngest of those.
    private func loser(to transfer: Transfer) -> TransferID? {
        let isHostFull = isFull(transfer.host)
        let candidates = transfers.filter { _, other in
            other.state == .running && !other.wasPreempted && other.priorities.highest <= .prefetch
                && (!isHostFull || other.host == transfer.host)
        }
        return candidates.min { left, right in
            (left.value.priorities.highest, right.key) < (right.value.priorities.highest, left.key)
        }?.key
    }

    /// Of the transfers for other hosts that have not been answered, the one that waits longest.
    private func yielder(to transfer: Transfer) -> TransferID? {
        guard slotsInUse >= limits.maximumDownloads, slotsYielded < limits.maximumYielded,
            !isFull(transfer.host)
        else { return nil }
        return transfers.filter { _, other in
            other.state == .running && !other.hasBytes && other.host != transfer.host
        }.keys.min()
    }
}
