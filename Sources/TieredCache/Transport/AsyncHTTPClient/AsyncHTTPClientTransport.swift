#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOSSL
public import SystemPackage

/// The transport on AsyncHTTPClient: HTTP/1.1, one hop, bytes only as fast as they are pulled.
///
/// Redirects, decompression and the library's read timeout are off, because the engine decides
/// about all three. A failed connection attempt is reported at once; the library would retry until
/// the connect timeout and so hide a refused connection for ten seconds.
///
/// Connections are kept alive for 60 s and shared by all requests of this transport. A request that
/// must not be sent twice, and one with content, has a connection of its own, which is closed after
/// it: an origin that leaves the content of a GET unread takes it for the next request.
public final class AsyncHTTPClientTransport: Transport, CancellableTransport {
    private let pool: AsyncHTTPClientPool

    /// Creates a transport; no connection is made before the first request.
    ///
    /// - Parameter additionalTrustRoots: PEM files with certificates that are trusted beside the
    ///   system's. A file that cannot be read fails every `https` request with
    ///   ``TransportError/Kind/tls``.
    public init(additionalTrustRoots: [FilePath] = []) {
        pool = AsyncHTTPClientPool(additionalTrustRoots: additionalTrustRoots)
    }

    deinit {
        pool.shutDownInBackground()
    }

    /// Sends `request` and returns when the final response's head has arrived.
    ///
    /// - Parameter request: The request; a `Host` field in it wins over the authority.
    /// - Returns: The head, and the body still in the socket.
    /// - Throws: ``TransportError``; ``TransportError/Kind/invalidRequest`` where a byte in the
    ///   request would break its framing.
    public func send(
        _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
        // A cancel that came before wins over whatever the connection brings (invariant 11).
        guard !Task.isCancelled else {
            throw TransportError(.cancelled, "the task was cancelled")
        }
        let exchange = AsyncHTTPClientExchange(onInterim: request.onInterim)
        request.onStart?({ exchange.cancel() })
        let hasContent = request.upload != nil || request.body?.isEmpty == false
        let isFresh = !request.head.method.isSafe || hasContent
        let outgoing = try AsyncHTTPClientRequest(request, isLast: isFresh, for: exchange)
        // Of a request that was never written, the exchange is still waiting.
        defer { _ = PendingExchanges.take(outgoing.number) }
        let client = try pool.client(
            connectTimeout: request.connectTimeout,
            isFresh: isFresh
        )
        let task = client.execute(request: outgoing.request, delegate: exchange)
        exchange.didStart(cancelRequest: { task.cancel() })
        do throws(TransportError) {
            let head = try await exchange.head()
            return TransportResponse(
                head: head,
                body: AsyncHTTPClientBody(exchange),
                localAddress: exchange.localAddress
            )
        } catch  where pool.isShutDown && error.kind == .cancelled && !Task.isCancelled {
            throw TransportError(.shutDown, "the transport was shut down")
        }
    }

    /// Closes idle connections, cancels exchanges under way and refuses new ones.
    public func shutdown() async {
        await pool.shutDown()
    }
}

extension HTTPRequest.Method {
    /// Whether a request can be sent again when a connection turns out to be dead.
    fileprivate var isSafe: Bool { self == .get || self == .head }
}
#endif
