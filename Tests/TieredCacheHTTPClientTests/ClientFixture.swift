import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import TieredCache
import TieredCacheHTTPClient
import TieredCacheTesting

/// A client with a cache before it, and an origin on loopback.
struct ClientFixture {
    let origin: ScriptedOrigin
    let cache: MediaCache
    let client: CachingHTTPClient

    static func run(
        maximumRedirects: Int = 5,
        _ body: (ClientFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory("http-client")
        let cache = try MediaCache(MediaCache.Configuration(path: directory.path))
        let fixture = ClientFixture(
            origin: origin,
            cache: cache,
            client: CachingHTTPClient(cache: cache, maximumRedirects: maximumRedirects)
        )
        try await body(fixture)
        await cache.shutdown()
        await origin.stop()
    }

    /// Executes a request and collects the body.
    func execute(
        _ path: String,
        method: HTTPMethod = .GET,
        headers: HTTPHeaders = [:],
        body: HTTPClientRequest.Body? = nil
    ) async throws -> (response: HTTPClientResponse, text: String) {
        var request = HTTPClientRequest(url: origin.url(path))
        request.method = method
        request.headers = headers
        request.body = body
        let response = try await client.execute(request, timeout: .seconds(30))
        return (response, String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }

    func requests(for path: String) -> Int { origin.log.exchanges(for: path).count }
}

extension HTTPClientResponse {
    /// The field `Cache-Status`.
    var cacheStatus: String { headers["Cache-Status"].joined(separator: ", ") }
}
