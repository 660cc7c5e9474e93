#if HTTPClient
import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import TieredCache

/// A cache in front of calls of AsyncHTTPClient: what calls `execute` need not change.
struct CachedClient {
    let client: HTTPClient
    let cache: MediaCache

    /// Does what `HTTPClient.execute(_:timeout:)` does, a GET from the cache.
    func execute(
        _ request: HTTPClientRequest,
        timeout: TimeAmount
    ) async throws -> HTTPClientResponse {
        guard request.method == .GET, request.body == nil else {
            return try await client.execute(request, timeout: timeout)
        }
        var cached = try CacheRequest(request.url)
        for (name, value) in request.headers {
            guard let name = HTTPField.Name(name) else { continue }
            cached.fields.append(HTTPField(name: name, value: value))
        }
        let response = try await cache.response(for: cached)
        return HTTPClientResponse(
            status: HTTPResponseStatus(statusCode: response.status.code),
            headers: HTTPHeaders(response.fields.map { ($0.name.rawName, $0.value) }),
            body: .stream(response.body.map { ByteBuffer(bytes: $0) })
        )
    }
}

extension CachedClient: Example {
    static let usage = "client URL"

    static func run(_ arguments: [String]) async throws {
        guard let url = arguments.first else { throw UsageError() }
        let client = CachedClient(client: .shared, cache: try MediaCache())
        for method in [HTTPMethod.GET, .GET, .POST] {
            var request = HTTPClientRequest(url: url)
            request.method = method
            let response = try await client.execute(request, timeout: .seconds(30))
            let body = try await response.body.collect(upTo: 64 << 20)
            print("\(method): \(response.status.code), \(body.readableBytes) bytes")
        }
        await client.cache.shutdown()
    }
}
#endif
