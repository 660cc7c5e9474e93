#if AsyncHTTPClient
public import AsyncHTTPClient
import HTTPCaching
import HTTPTypes
public import Logging
public import NIOCore
import NIOHTTP1
public import TieredCache

/// AsyncHTTPClient with a cache: the same calls, requests and responses, by the rules of RFC 9111.
///
/// ```swift
/// let client = CachingHTTPClient(.shared, cache: try MediaCache())
/// let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
/// ```
///
/// GET and HEAD without content are answered as an intermediary may answer them: conditions and
/// ranges too. They go by the connections of the cache, with the limits, retries and trust of its
/// configuration, not those of the client's. Everything else is left to the client: other methods,
/// requests with content, with a `Host`, an `Expect` or an `Upgrade` of their own, with a TLS
/// configuration or a local address, and schemes other than http and https. What such a request
/// changes is no longer used afterwards (RFC 9111 §4.4).
///
/// The field `Cache-Status` of each response says what the cache did (RFC 9211). Several values may
/// share a client and a cache.
public struct CachingHTTPClient: Sendable {
    /// The client for what the cache does not answer; its owner shuts it down.
    public let client: HTTPClient
    /// The cache; its owner shuts it down.
    public let cache: MediaCache
    let maximumRedirects: Int

    /// Puts a cache in front of a client.
    ///
    /// - Parameters:
    ///   - client: the client.
    ///   - cache: the cache.
    ///   - maximumRedirects: how many redirects of a cached request are followed, 5 by default as in
    ///     the client; 0 returns each redirect as a response. None leads from https to http, or from
    ///     elsewhere to this machine: such a redirect is returned.
    public init(_ client: HTTPClient = .shared, cache: MediaCache, maximumRedirects: Int = 5) {
        self.client = client
        self.cache = cache
        self.maximumRedirects = maximumRedirects
    }

    /// Executes a request as `HTTPClient.execute(_:deadline:logger:)` does.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - deadline: when the head of the response must be there; its body may come later.
    ///   - logger: for requests that the client executes; the cache has a logger of its own.
    /// - Returns: the response; its body is still in the cache or on its way.
    /// - Throws: `HTTPClientError`, `CancellationError`; `CacheError` for what has no counterpart in
    ///   the client: an origin that cannot be reached, or breaks the protocol.
    public func execute(
        _ request: HTTPClientRequest,
        deadline: NIODeadline,
        logger: Logger? = nil
    ) async throws -> HTTPClientResponse {
        guard let relayed = RelayRequest(request) else {
            return try await executeUncached(request, deadline: deadline, logger: logger)
        }
        let followed = try await Deadline.run(until: deadline) { [cache, maximumRedirects] in
            do throws(CacheError) {
                return try await cache.relay(relayed, followingAtMost: maximumRedirects)
            } catch {
                throw error.asClientError
            }
        }
        guard !followed.isOverLimit else { throw HTTPClientError.redirectLimitReached }
        return HTTPClientResponse(followed, to: request)
    }

    /// Executes a request as `HTTPClient.execute(_:timeout:logger:)` does.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - timeout: how long the head of the response may take.
    ///   - logger: for requests that the client executes.
    /// - Returns: the response.
    /// - Throws: what ``execute(_:deadline:logger:)`` throws.
    public func execute(
        _ request: HTTPClientRequest,
        timeout: TimeAmount,
        logger: Logger? = nil
    ) async throws -> HTTPClientResponse {
        try await execute(request, deadline: .now() + timeout, logger: logger)
    }

    /// Shuts the client down; the cache stays open.
    ///
    /// - Throws: what `HTTPClient.shutdown()` throws.
    public func shutdown() async throws {
        try await client.shutdown()
    }

    private func executeUncached(
        _ request: HTTPClientRequest,
        deadline: NIODeadline,
        logger: Logger?
    ) async throws -> HTTPClientResponse {
        var response = try await client.execute(request, deadline: deadline, logger: logger)
        for hop in response.history {
            await invalidate(
                afterMethod: hop.request.method,
                url: hop.request.url,
                head: hop.responseHead
            )
        }
        response.headers.addCacheStatus(ofMethod: request.method)
        return response
    }

    /// Makes unusable what a request has changed.
    func invalidate(afterMethod method: HTTPMethod, url: String, head: HTTPResponseHead) async {
        guard let method = HTTPRequest.Method(method.rawValue), !Invalidation.isSafe(method),
            let target = TargetURI(ofRequest: url)
        else { return }
        var fields: HTTPFields = [:]
        for name: HTTPField.Name in [.location, .contentLocation] {
            fields[name] = head.headers.first(name: name.rawName)
        }
        await cache.invalidate(
            afterMethod: method,
            target: target,
            status: Int(head.status.code),
            fields: fields
        )
    }
}
#endif
