/// The subscription of one request to a transfer.
///
/// Ends exactly once: with the transfer's result, or by leaving. Releasing it leaves, unless it
/// lingers (``SharedTransfers/linger(_:by:)``).
package final class Subscription: Sendable {
    /// The transfer, or nil if the queue was shut down when this subscription was made.
    package var transfer: TransferID? { context?.id }
    /// Whether the transfer was started for this subscription; otherwise it joined a running one.
    package let isFirst: Bool
    /// The end of the transfer's coverage when this subscription was made; `.max` if it was
    /// unknown.
    package let end: Int64
    /// What the transfer's response has become; nil without a transfer.
    let context: TransferContext?
    let id: SubscriberID
    private let shared: SharedTransfers

    init(
        _ id: SubscriberID,
        to context: TransferContext?,
        isFirst: Bool,
        end: Int64,
        of shared: SharedTransfers
    ) {
        (self.id, self.context, self.isFirst, self.end) = (id, context, isFirst, end)
        self.shared = shared
    }

    deinit {
        shared.release(id)
    }

    /// The priority of this subscriber; a change takes effect at once, also while the transfer
    /// runs.
    ///
    /// After the end it is the lowest, and setting it has no effect.
    package var priority: RequestPriority {
        get { shared.priority(of: id) }
        set { shared.setPriority(newValue, of: id) }
    }

    /// Asks for more bytes, the first of which is missing.
    ///
    /// A transfer that has brought what all its subscribers have asked for may pause, and keeps its
    /// connection.
    ///
    /// - Returns: whether the transfer will bring the first byte.
    package func extend(for range: Range<Int64>) -> Bool { shared.extend(id, for: range) }

    /// Whether the transfer has stored the byte at `offset`: if it is missing, it was lost.
    package func hasPassed(_ offset: Int64) -> Bool {
        guard case .storing? = context?.outcome, context?.bypass == nil else { return false }
        return context?.update { $0.hasPassed(offset) } ?? false
    }

    /// Leaves; the transfer continues for its other subscribers, or is cancelled without any.
    package func cancel() { shared.leave(id) }

    /// Leaves with ``CacheError/Code/busy`` if the transfer still waits for a slot after a while.
    func leaveIfWaiting(after limit: Duration, by time: any TimeSource) {
        guard let context, context.isWaiting else { return }
        _ = time.alarm(after: limit) { [weak shared, id] in shared?.leaveIfWaiting(id) }
    }

    /// The outcome; nil while the transfer runs.
    ///
    /// ``CacheError/Code/cancelled`` after leaving, ``CacheError/Code/shutDown`` after the queue's
    /// shutdown, else what the work returned.
    package var outcome: Result<Void, CacheError>? { shared.outcome(of: id) }
}

extension CacheError {
    static let queueBusy = CacheError(.busy, "too many downloads are under way")
    static let queueShutDown = CacheError(.shutDown, "the cache has been shut down")
}
