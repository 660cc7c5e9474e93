#if AsyncHTTPClient
public import AsyncHTTPClient
import FoundationEssentials
public import Logging
public import NIOCore
import NIOHTTP1

// The calls of the client that return futures.
extension CachingHTTPClient {
    /// Executes a request as `HTTPClient.execute(request:deadline:logger:)` does: the whole body is
    /// collected, at most 4 GiB.
    ///
    /// - Parameters:
    ///   - request: the request; one with a body is left to the client.
    ///   - deadline: when the head of the response must be there; nil for any time.
    ///   - logger: for requests that the client executes.
    /// - Returns: the response, or the error that ``execute(_:deadline:logger:)`` throws.
    public func execute(
        request: HTTPClient.Request,
        deadline: NIODeadline? = nil,
        logger: Logger? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        let loop = client.eventLoopGroup.any()
        guard request.body == nil, request.tlsConfiguration == nil else {
            return executeUncached(request, deadline: deadline, logger: logger, on: loop)
        }
        var streamed = HTTPClientRequest(url: request.url.absoluteString)
        streamed.method = request.method
        streamed.headers = request.headers
        return loop.makeFutureWithTask { [self, streamed] in
            let response = try await execute(
                streamed,
                deadline: deadline ?? .distantFuture,
                logger: logger
            )
            return try await HTTPClient.Response(collecting: response, to: request)
        }
    }

    private func executeUncached(
        _ request: HTTPClient.Request,
        deadline: NIODeadline?,
        logger: Logger?,
        on loop: any EventLoop
    ) -> EventLoopFuture<HTTPClient.Response> {
        let executed =
            if let logger {
                client.execute(request: request, deadline: deadline, logger: logger)
            } else {
                client.execute(request: request, deadline: deadline)
            }
        return executed.hop(to: loop).flatMap { response in
            loop.makeFutureWithTask {
                for hop in response.history {
                    await invalidate(
                        afterMethod: hop.request.method,
                        url: hop.request.url.absoluteString,
                        head: hop.responseHead
                    )
                }
                var response = response
                response.headers.addCacheStatus(ofMethod: request.method)
                return response
            }
        }
    }

    /// Executes a GET, collecting its body; see ``execute(request:deadline:logger:)``.
    public func get(
        url: String,
        deadline: NIODeadline? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.GET, url: url, deadline: deadline)
    }

    /// Executes a POST by the client; what it changes is no longer used from the cache.
    public func post(
        url: String,
        body: HTTPClient.Body? = nil,
        deadline: NIODeadline? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.POST, url: url, body: body, deadline: deadline)
    }

    /// Executes a PATCH by the client; see ``post(url:body:deadline:)``.
    public func patch(
        url: String,
        body: HTTPClient.Body? = nil,
        deadline: NIODeadline? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.PATCH, url: url, body: body, deadline: deadline)
    }

    /// Executes a PUT by the client; see ``post(url:body:deadline:)``.
    public func put(
        url: String,
        body: HTTPClient.Body? = nil,
        deadline: NIODeadline? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.PUT, url: url, body: body, deadline: deadline)
    }

    /// Executes a DELETE by the client; see ``post(url:body:deadline:)``.
    public func delete(
        url: String,
        deadline: NIODeadline? = nil
    ) -> EventLoopFuture<HTTPClient.Response> {
        execute(.DELETE, url: url, deadline: deadline)
    }

    private func execute(
        _ method: HTTPMethod,
        url: String,
        body: HTTPClient.Body? = nil,
        deadline: NIODeadline?
    ) -> EventLoopFuture<HTTPClient.Response> {
        do {
            let request = try HTTPClient.Request(url: url, method: method, body: body)
            return execute(request: request, deadline: deadline)
        } catch {
            return client.eventLoopGroup.any().makeFailedFuture(error)
        }
    }
}

extension HTTPClient.Response {
    /// The response with its whole body.
    fileprivate init(
        collecting response: HTTPClientResponse,
        to request: HTTPClient.Request
    ) async throws {
        // The most that the client itself collects.
        let body = try await response.body.collect(upTo: Int(UInt32.max))
        var last = request
        var history: [HTTPClient.RequestResponse] = []
        for hop in response.history {
            last = try HTTPClient.Request(
                url: hop.request.url,
                method: hop.request.method,
                headers: hop.request.headers
            )
            history.append(.init(request: last, responseHead: hop.responseHead))
        }
        self.init(
            host: last.host,
            status: response.status,
            version: response.version,
            headers: response.headers,
            body: body.readableBytes > 0 ? body : nil,
            history: history
        )
    }
}
#endif
