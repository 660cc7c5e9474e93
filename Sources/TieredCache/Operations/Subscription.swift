/// One requester's share in a flight.
///
/// Ends exactly once: with the flight's result, or by leaving. Releasing the subscription leaves.
package final class Subscription: Sendable {
    /// The flight, or nil if the queue was shut down when this subscription was made.
    package let flight: FlightID?
    /// Whether the flight was made for this subscription; otherwise it joined one under way.
    package let isFirst: Bool
    /// Where what the flight brings ended when this subscription was made; `.max` where that was not
    /// known.
    package let end: Int64
    /// What the flight's head meant, and more; nil if there is no flight.
    let report: FlightReport?
    private let id: SubscriberID
    private let queue: RequestQueue
    private let latch: Latch<Void>

    init(
        _ join: RequestQueueStateMachine.Join,
        report: FlightReport?,
        queue: RequestQueue,
        latch: Latch<Void>
    ) {
        flight = join.flight
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

    /// How urgent this requester is; takes effect at once, also while the flight runs.
    ///
    /// After the end it is the lowest, and setting it does nothing.
    package var priority: RequestPriority {
        get { queue.priority(of: id) }
        set { queue.setPriority(newValue, of: id) }
    }

    /// Stays for so many bytes more, after which the flight ends unless another request has joined it.
    package func linger(for amount: Int64) {
        if let flight { queue.linger(flight, for: amount) }
    }

    /// Leaves; the flight goes on for the others, or is cancelled if there are none.
    package func cancel() {
        queue.leave(id)
    }

    /// How it ended; nil while the flight goes on.
    package var outcome: Result<Void, CacheError>? { latch.outcome }

    /// Waits until the flight has ended; cancelling the waiting task leaves.
    ///
    /// - Throws: the error that the flight ended with, ``CacheError/Code/cancelled`` after leaving,
    ///   ``CacheError/Code/shutDown`` after the queue's shutdown.
    package func value() async throws(CacheError) {
        let outcome = await withTaskCancellationHandler {
            await latch.wait()
        } onCancel: {
            cancel()
        }
        // Nil: this task was cancelled. The subscription has been left, which is an outcome.
        guard let outcome = outcome ?? latch.outcome else { throw .leftFlight }
        try outcome.get()
    }
}

extension CacheError {
    static let queueShutDown = CacheError(.shutDown, "the cache has been shut down")
}
