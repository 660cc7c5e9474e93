#if AsyncHTTPClient
import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import TieredCache
import TieredCacheHTTPClient

/// AsyncHTTPClient with a cache: requests, calls and responses are its own.
enum CachedClient: Example {
    static let usage = "client URL"

    static func run(_ arguments: [String]) async throws {
        guard let url = arguments.first else { throw UsageError() }
        let cache = try MediaCache()
        let client = CachingHTTPClient(.shared, cache: cache)
        for method in [HTTPMethod.GET, .GET, .POST] {
            var request = HTTPClientRequest(url: url)
            request.method = method
            let response = try await client.execute(request, timeout: .seconds(30))
            let body = try await response.body.collect(upTo: 64 << 20)
            print("\(method): \(response.status.code), \(body.readableBytes) bytes")
        }
        await cache.shutdown()
    }
}
#endif
