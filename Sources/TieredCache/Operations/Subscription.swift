/// The subscription of one request to a transfer.
///
/// Ends exactly once: with the transfer's result, or by leaving. Releasing it leaves.
package final class Subscription: Sendable {
    /// The transfer, or nil if the queue was shut down when this subscription was made.
    package let transfer: TransferID?
    /// Whether the transfer was started for this subscription; otherwise it joined a running one.
    package let isFirst: Bool
    /// The end of the transfer's coverage when this subscription was made; `.max` if it was
    /// unknown.
    package let end: Int64
    /// What the transfer's response has become; nil without a transfer.
    let context: TransferContext?
    private let id: SubscriberID
    private let queue: RequestQueue
    private let latch: Latch<Void>

    init(
        _ join: RequestQueueStateMachine.Join,
        context: TransferContext?,
        queue: RequestQueue,
        latch: Latch<Void>
    ) {
        transfer = join.transfer
        self.context = context
        isFirst = join.isNew
        end = join.end
        id = join.subscriber
        self.queue = queue
        self.latch = latch
    }

    deinit {
        queue.leave(id)
    }

    /// The priority of this subscriber; a change takes effect at once, also while the transfer
    /// runs.
    ///
    /// After the end it is the lowest, and setting it has no effect.
    package var priority: RequestPriority {
        get { queue.priority(of: id) }
        set { queue.setPriority(newValue, of: id) }
    }

    /// Asks for more bytes, the first of which is missing.
    ///
    /// A transfer that has brought what all its subscribers have asked for may pause, and keeps its
    /// connection.
    ///
    /// - Returns: whether the transfer will bring the first byte.
    package func extend(for range: Range<Int64>) -> Bool {
        queue.extend(id, for: range)
    }

    /// Whether the transfer has stored the byte at `offset`: if it is missing, it was lost.
    package func hasPassed(_ offset: Int64) -> Bool {
        guard let transfer, case .storing? = context?.outcome, context?.bypass == nil else {
            return false
        }
        return queue.hasPassed(offset, transfer)
    }

    /// Stays for `amount` more bytes, after which the transfer ends unless another request has
    /// joined.
    package func linger(for amount: Int64) {
        if let transfer { queue.linger(transfer, for: amount) }
    }

    /// Leaves; the transfer continues for its other subscribers, or is cancelled without any.
    package func cancel() {
        queue.leave(id)
    }

    /// Leaves with ``CacheError/Code/busy`` if the transfer still waits for a slot after a while.
    func leaveIfWaiting(after limit: Duration, by time: any TimeSource) {
        guard queue.isWaiting(id) else { return }
        _ = time.alarm(after: limit) { [queue, id] in queue.leaveIfWaiting(id) }
    }

    /// The outcome; nil while the transfer runs.
    package var outcome: Result<Void, CacheError>? { latch.outcome }

    /// Waits until the transfer has ended; cancelling the waiting task leaves.
    ///
    /// - Throws: the error of the transfer, ``CacheError/Code/cancelled`` after leaving,
    ///   ``CacheError/Code/shutDown`` after the queue's shutdown.
    package func value() async throws(CacheError) {
        let outcome = await withTaskCancellationHandler {
            await latch.wait()
        } onCancel: {
            cancel()
        }
        // Nil: this task was cancelled. The subscription has left the transfer, which is an
        // outcome.
        guard let outcome = outcome ?? latch.outcome else { throw .leftTransfer }
        try outcome.get()
    }
}

extension CacheError {
    static let queueBusy = CacheError(.busy, "too many downloads are under way")
    static let queueShutDown = CacheError(.shutDown, "the cache has been shut down")
}
