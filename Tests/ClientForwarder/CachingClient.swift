import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import TieredCache
import TieredCacheHTTPClient

/// AsyncHTTPClient with a cache.
struct CachingClient: ForwardingClient {
    private let client: CachingHTTPClient

    init(directory: URL) throws {
        let cache = try MediaCache(MediaCache.Configuration(directory: directory))
        let plain = HTTPClient(configuration: .init(redirectConfiguration: .disallow))
        client = CachingHTTPClient(plain, cache: cache, maximumRedirects: 0)
    }

    func response(
        to request: HTTPRequestHead,
        body: ByteBuffer
    ) async throws -> (HTTPResponseHead, ByteBuffer) {
        var asked = HTTPClientRequest(url: request.uri)
        asked.method = request.method
        asked.headers = request.headers
        if body.readableBytes > 0 { asked.body = .bytes(body) }
        let response = try await client.execute(asked, deadline: .now() + .seconds(30))
        let head = HTTPResponseHead(
            version: .http1_1,
            status: response.status,
            headers: response.headers
        )
        return (head, try await response.body.collect(upTo: 1 << 20))
    }
}
