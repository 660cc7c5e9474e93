/// A request that the caller starts, prioritizes and cancels.
///
/// Runs at most once and ends exactly once. Several tasks may wait for it; it is cancelled when
/// the last of them is. ``MediaCache/response(for:)`` is the short form. May be used from any
/// thread.
public final class RequestOperation: Sendable {
    private let operation: CombinedOperation<CacheResponse, LookupOperation.Remainder>

    init(_ operation: CombinedOperation<CacheResponse, LookupOperation.Remainder>) {
        self.operation = operation
    }

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

    /// Starts the request if need be and waits for its answer.
    ///
    /// - Returns: the response, the same for all waiting tasks; its body is readable once.
    /// - Throws: what ``MediaCache/response(for:)`` throws.
    public func response() async throws(CacheError) -> CacheResponse {
        try await operation.value()
    }
}
