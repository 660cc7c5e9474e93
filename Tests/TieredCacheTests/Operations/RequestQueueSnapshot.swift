@testable import TieredCache

/// What a request queue is doing at one instant.
struct RequestQueueSnapshot: Sendable {
    /// One transfer.
    struct Transfer: Sendable {
        /// What the transfer is doing.
        enum State: String, Sendable {
            /// Waits for its first slot.
            case queued
            /// Has a slot.
            case running
            /// Waits for its first byte; its slot was given to what plays.
            case yielded
            /// Has given its slot back because it has no active reader.
            case stalled
            /// Was stalled and waits for a slot.
            case resuming
            /// Has lost its last subscriber and is about to end.
            case cancelled
        }

        let id: TransferID
        let state: State
    }

    /// All transfers, in order of arrival.
    let transfers: [Transfer]
    /// Slots in use: running transfers, and cancelled ones that have not ended.
    let slotsInUse: Int
    let isSuspended: Bool

    /// The number of transfers in `state`.
    func count(_ state: Transfer.State) -> Int {
        transfers.count { $0.state == state }
    }
}

extension RequestQueueStateMachine {
    /// The present state, for people.
    ///
    /// - Complexity: O(n log n) in the number of transfers.
    func snapshot() -> RequestQueueSnapshot {
        let transfers = transfers.sorted { $0.key < $1.key }.map { id, transfer in
            RequestQueueSnapshot.Transfer(id: id, state: transfer.state.shown)
        }
        return RequestQueueSnapshot(
            transfers: transfers,
            slotsInUse: slotsInUse,
            isSuspended: isSuspended
        )
    }
}

extension RequestQueueStateMachine.Transfer.State {
    fileprivate var shown: RequestQueueSnapshot.Transfer.State {
        switch self {
        case .queued: .queued
        case .running: .running
        case .yielded: .yielded
        case .stalled: .stalled
        case .resuming: .resuming
        case .cancelled: .cancelled
        }
    }
}

extension RequestQueue {
    func snapshot() -> RequestQueueSnapshot { state.withLock { $0.machine.snapshot() } }

    /// What the resources know of its transfers that have a subscriber.
    var known: [ResourceState.Transfer] {
        let contexts = state.withLock { Array($0.contexts.values) }
        return contexts.compactMap { context in context.update { $0 } }
    }
}
