#if HTTPClient
import HTTPTypes
public import SystemPackage

/// The transport on SwiftNIO: HTTP/1.1, one hop, bytes only as fast as they are read.
///
/// Connections are kept alive for 60 s and shared by all requests of this transport. A request that
/// must not be sent twice, or has content, gets a connection of its own, which is closed after it:
/// an origin that does not read the content of a GET takes it for the next request. A request from
/// an event loop of SwiftNIO's shared group prefers a connection on that loop, so that it changes no
/// thread.
///
/// The number of connections is not limited here: the engine's queues limit running requests.
public final class NIOTransport: Transport, CancellableTransport {
    private let pool: ConnectionPool

    /// Creates a transport; no connection is made before the first request.
    ///
    /// - Parameter additionalTrustRoots: PEM files with certificates that are trusted beside those
    ///   of the system. As long as one cannot be read, every `https` request fails with
    ///   ``TransportError/Kind/tls``.
    public convenience init(additionalTrustRoots: [FilePath] = []) {
        self.init(additionalTrustRoots: additionalTrustRoots, lookups: .shared)
    }

    init(additionalTrustRoots: [FilePath] = [], lookups: HostLookups) {
        pool = ConnectionPool(additionalTrustRoots: additionalTrustRoots, lookups: lookups)
    }

    deinit {
        pool.close()
    }

    /// Sends `request` and returns when the final response's head has arrived.
    ///
    /// - Parameter request: The request; a `Host` field in it overrides the authority.
    /// - Returns: The head, and the body still in the socket.
    /// - Throws: ``TransportError``; ``TransportError/Kind/invalidRequest`` if a byte in the
    ///   request would break its framing.
    public func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        // An earlier cancellation wins over any response (invariant 11).
        guard !Task.isCancelled else {
            throw TransportError(.cancelled, "the task was cancelled")
        }
        let outgoing = try OutgoingRequest(request)
        let exchange = Exchange(onInterim: request.onInterim)
        request.onStart?({ exchange.cancel() })
        try pool.start(outgoing, for: exchange)
        do throws(TransportError) {
            let head = try await exchange.head()
            return TransportResponse(
                head: head,
                body: ExchangeBody(exchange),
                localAddress: exchange.localAddress
            )
        } catch  where pool.isClosed && error.kind == .cancelled && !Task.isCancelled {
            throw TransportError(.shutDown, "the transport was shut down")
        }
    }

    /// Closes idle connections, cancels running exchanges and refuses new ones.
    public func shutdown() async {
        await pool.shutDown()
    }
}
#endif
