package import HTTPCaching
package import HTTPTypes

/// Watches what is asked of origins, for traces and metrics; the product `TieredCacheObservability`
/// has one.
///
/// Its calls run in the tasks of the cache and must not wait. Nothing calls it for a hit.
package protocol OriginObserver: Sendable {
    /// Begins to observe a transfer.
    ///
    /// Runs in the task of the request that needs the transfer, which is not the task that carries
    /// it out: task-local values are those of the request here alone.
    ///
    /// - Parameter reason: why the cache does not answer without the origin.
    /// - Returns: the observation of the transfer.
    func observe(_ reason: CacheStatus.ForwardReason) -> any TransferObservation

    /// Runs `body` so that what it asks of origins belongs to the trace of a client's request.
    ///
    /// - Parameters:
    ///   - fields: the fields of the client's request, which may name its trace, as `traceparent`.
    ///   - body: the work for the client.
    func continueTrace(of fields: HTTPFields, in body: @Sendable () async -> Void) async
}

/// One transfer: the requests that bring a range of bytes, with redirects and retries.
package protocol TransferObservation: Sendable {
    /// Another request waits for the same transfer; runs in its task.
    func didJoin()

    /// Begins to observe one request of the transfer.
    ///
    /// - Parameters:
    ///   - request: the request; fields may be added.
    ///   - target: its URL.
    /// - Returns: the observation of the request.
    func begin(_ request: inout HTTPRequest, to target: TargetURI) -> any ExchangeObservation
}

/// One request and its response.
package protocol ExchangeObservation: Sendable {
    /// The final head has arrived.
    func didReceiveHead(status: Int)
    /// The exchange has failed.
    ///
    /// - Parameters:
    ///   - error: the error.
    ///   - type: its kind, of few values.
    func didFail(_ error: any Error, type: String)
    /// The caller has cancelled the exchange, which is no failure.
    func didCancel()
    /// The exchange is over, in any case; called once.
    func end()
}
