// A playing request waits neither for transfers without urgent subscribers nor for silent origins
// (invariant 12).
extension RequestQueueStateMachine {
    /// Gives a slot to a transfer of a playing request: the slot of a prefetch or background
    /// transfer, or of one that waits for its response.
    ///
    /// The first kind is paused: its bytes stay, and it continues when it has a slot again. That
    /// happens to a transfer at most once, so it always makes progress.
    ///
    /// The second kind keeps waiting, and requests a slot when its first byte has come. It still
    /// counts against its host, so that a silent host gets no more requests, and their number is
    /// limited by ``Limits/maximumYielded``.
    ///
    /// - Parameter id: the transfer; ignored unless its priority is `playing` and it waits.
    /// - Returns: the actions to perform.
    mutating func makeRoom(for id: TransferID) -> [Action] {
        guard let transfer = transfers[id], transfer.isWaiting,
            transfer.priority == .playing, transfer.state == .resuming || mayStart
        else { return [] }
        if let victim = preemptionVictim(for: transfer), let preempted = transfers[victim] {
            transfers[victim]?.state = .stalled
            transfers[victim]?.wasPreempted = true
            release(preempted)
            return [.pause(victim)] + fillSlots()
        }
        guard let (id, silent) = longestSilentTransfer(for: transfer) else { return [] }
        transfers[id]?.state = .yielded
        releaseSlot(of: silent)
        slotsYielded += 1
        return [.pause(id)] + fillSlots()
    }

    private func isFull(_ host: String) -> Bool {
        placesInUseByHost[host, default: 0] >= limits.maximumPerHost
    }

    /// Of the transfers that may be preempted, one with the lowest priority; the newest of those.
    private func preemptionVictim(for transfer: Transfer) -> TransferID? {
        let isHostFull = isFull(transfer.host)
        let candidates = transfers.filter { _, other in
            other.state == .running && !other.wasPreempted && other.priority <= .prefetch
                && (!isHostFull || other.host == transfer.host)
        }
        return candidates.min { left, right in
            // Crosswise: the lowest priority, and of these the highest number, which is the newest.
            (left.value.priority, right.key) < (right.value.priority, left.key)
        }?.key
    }

    /// Of the transfers for other hosts without a response, the one that waits longest.
    private func longestSilentTransfer(for transfer: Transfer) -> (TransferID, Transfer)? {
        guard slotsInUse >= limits.maximumDownloads, slotsYielded < limits.maximumYielded,
            !isFull(transfer.host)
        else { return nil }
        let silent = transfers.filter { _, other in
            other.state == .running && !other.hasResponded && other.host != transfer.host
        }
        // Numbers ascend: the lowest is the oldest.
        return silent.min { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
