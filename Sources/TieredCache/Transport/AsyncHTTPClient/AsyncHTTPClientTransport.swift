#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOSSL
public import SystemPackage

/// The transport on AsyncHTTPClient: HTTP/1.1, one hop, bytes only as fast as they are read.
///
/// Redirects, decompression and the library's read timeout are off, because the engine decides
/// about all three. A failed connection attempt is reported at once; the library would retry until
/// the connect timeout and so hide a refused connection for ten seconds.
///
/// Connections are kept alive for 60 s and shared by all requests of this transport. A request that
/// must not be sent twice, or has content, gets a connection of its own, which is closed after it:
/// an origin that does not read the content of a GET takes it for the next request.
public final class AsyncHTTPClientTransport: Transport, CancellableTransport {
    private let pool: AsyncHTTPClientPool

    /// Creates a transport; no connection is made before the first request.
    ///
    /// - Parameter additionalTrustRoots: PEM files with certificates that are trusted beside those
    ///   of the system. An unreadable file fails every `https` request with
    ///   ``TransportError/Kind/tls``.
    public init(additionalTrustRoots: [FilePath] = []) {
        pool = AsyncHTTPClientPool(additionalTrustRoots: additionalTrustRoots)
    }

    deinit {
        pool.shutDownInBackground()
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
        let exchange = AsyncHTTPClientExchange(onInterim: request.onInterim)
        request.onStart?({ exchange.cancel() })
        let hasContent = request.upload != nil || request.body?.isEmpty == false
        let isFresh = !request.head.method.isSafe || hasContent
        let client = try pool.client(
            connectTimeout: request.connectTimeout,
            isFresh: isFresh
        )
        let outgoing = try AsyncHTTPClientRequest(
            request,
            isLast: isFresh,
            for: exchange,
            templates: pool.templates
        )
        // The exchange of a request that was never written is still registered.
        defer { _ = PendingExchanges.take(outgoing.number) }
        execute(outgoing.request, with: client, for: exchange)
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

    /// Begins a request on the event loop that is to carry it, which is woken once for all of it:
    /// from elsewhere the library wakes it for each of several steps.
    private func execute(
        _ request: HTTPClient.Request,
        with client: HTTPClient,
        for exchange: AsyncHTTPClientExchange
    ) {
        let execute: @Sendable () -> Void = { [pool] in
            // A cancel before the start wins (invariant 11).
            guard !exchange.isCancelled else { return }
            let task = client.execute(request: request, delegate: exchange)
            exchange.didStart(cancelRequest: { task.cancel() })
            // A client that was shut down meanwhile tells the delegate nothing.
            if pool.isShutDown { exchange.cancel() }
        }
        let eventLoop = client.eventLoopGroup.any()
        if eventLoop.inEventLoop { execute() } else { eventLoop.execute(execute) }
    }

    /// Closes idle connections, cancels running exchanges and refuses new ones.
    public func shutdown() async {
        await pool.shutDown()
    }
}

extension HTTPRequest.Method {
    /// Whether a request can be repeated if a connection turns out to be dead.
    fileprivate var isSafe: Bool { self == .get || self == .head }
}
#endif
