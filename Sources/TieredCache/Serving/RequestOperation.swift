/// A request that the caller starts, prioritizes and cancels.
///
/// Runs at most once and ends exactly once. Several tasks may wait for it; it is cancelled when
/// the last of them is. ``MediaCache/response(for:)`` is the short form. May be used from any
/// thread.
public final class RequestOperation: Sendable {
    private let operation: CombinedOperation<CacheResponse, LookupOperation.Remainder>
    private let reports = RequestReports()

    init(_ request: CacheRequest, responder: Responder) {
        var request = request
        request.reports = reports
        operation = responder.operation(for: request)
    }

    /// The number of streams that have not ended.
    var consumers: Int { reports.consumers }

    /// How urgent the request is; takes effect at once, also while its download waits or runs.
    ///
    /// A download that several requests share is as urgent as the most urgent of them.
    public var priority: RequestPriority {
        get { operation.priority }
        set { operation.priority = newValue }
    }

    /// Begins the lookup; a second call changes nothing.
    public func start() {
        operation.start()
    }

    /// Ends the request with `.cancelled`, unless it has ended; a cancel before the start wins.
    ///
    /// What its download has brought stays cached. Others that share the download keep it.
    public func cancel() {
        operation.cancel()
    }

    /// The progress of the transfers that this operation starts, for one consumer.
    ///
    /// Yields the latest progress first, if there is any, then changes, at most ten per second; a
    /// slow consumer gets the newest one only. Several requests that share a transfer have its
    /// progress in the first of them alone, and a validation in the background has none.
    ///
    /// The body arrives after the response, and reading it may start more transfers. Therefore the
    /// stream ends with an error or a cancel of the operation; otherwise once it has its response,
    /// no transfer that it started goes on, and its body starts no other one: all bytes of it are
    /// stored, or it was read to its end, or a read of it failed, or it was released. The operation
    /// keeps its response: release it too if you leave a body in the middle. Further streams end as
    /// this one does.
    public var progress: AsyncStream<DownloadProgress> { reports.progress() }

    /// The notices of the transfers that this operation starts, for one consumer.
    ///
    /// None is lost: those from before the consumer came are yielded first, the last 256 of them.
    /// Ends when ``progress`` ends.
    public var notices: AsyncStream<DownloadNotice> { reports.notices() }

    /// Starts the request if need be and waits for its response.
    ///
    /// - Returns: the response, the same for all waiting tasks; its body is readable once.
    /// - Throws: what ``MediaCache/response(for:)`` throws.
    public func response() async throws(CacheError) -> CacheResponse {
        try await operation.value()
    }
}
