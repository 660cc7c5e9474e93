/// One requester's share in a transfer.
///
/// Ends exactly once: with the transfer's result, or by leaving. Releasing the subscription leaves.
package final class Subscription: Sendable {
    /// The transfer, or nil if the queue was shut down when this subscription was made.
    package let transfer: TransferID?
    /// Whether the transfer was made for this subscription; otherwise it joined one under way.
    package let isFirst: Bool
    /// Where what the transfer brings ended when this subscription was made; `.max` where that was
    /// not known.
    package let end: Int64
    /// What the transfer's head meant, and more; nil if there is no transfer.
    let report: TransferReport?
    private let id: SubscriberID
    private let queue: RequestQueue
    private let latch: Latch<Void>

    init(
        _ join: RequestQueueStateMachine.Join,
        report: TransferReport?,
        queue: RequestQueue,
        latch: Latch<Void>
    ) {
        transfer = join.transfer
        self.report = report
        isFirst = join.isNew
        end = join.end
        id = join.subscriber
        self.queue = queue
        self.latch = latch
    }

    deinit {
        queue.leave(id)
    }

    /// How urgent this requester is; takes effect at once, also while the transfer runs.
    ///
    /// After the end it is the lowest, and setting it does nothing.
    package var priority: RequestPriority {
        get { queue.priority(of: id) }
        set { queue.setPriority(newValue, of: id) }
    }

    /// Stays for so many bytes more, after which the transfer ends unless another request has
    /// joined it.
    package func linger(for amount: Int64) {
        if let transfer { queue.linger(transfer, for: amount) }
    }

    /// Leaves; the transfer goes on for the others, or is cancelled if there are none.
    package func cancel() {
        queue.leave(id)
    }

    /// How it ended; nil while the transfer goes on.
    package var outcome: Result<Void, CacheError>? { latch.outcome }

    /// Waits until the transfer has ended; cancelling the waiting task leaves.
    ///
    /// - Throws: the error that the transfer ended with, ``CacheError/Code/cancelled`` after
    ///   leaving, ``CacheError/Code/shutDown`` after the queue's shutdown.
    package func value() async throws(CacheError) {
        let outcome = await withTaskCancellationHandler {
            await latch.wait()
        } onCancel: {
            cancel()
        }
        // Nil: this task was cancelled. The subscription has been left, which is an outcome.
        guard let outcome = outcome ?? latch.outcome else { throw .leftTransfer }
        try outcome.get()
    }
}

extension CacheError {
    static let queueShutDown = CacheError(.shutDown, "the cache has been shut down")
}
