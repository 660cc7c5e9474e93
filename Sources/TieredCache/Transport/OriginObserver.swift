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
    /// The exchange has failed, or was cancelled.
    ///
    /// - Parameters:
    ///   - error: the error.
    ///   - type: its kind, of few values.
    func didFail(_ error: any Error, type: String)
    /// The exchange is over, in any case; called once.
    func end()
}
