import Foundation
import NIOCore
import NIOHTTP1
import TieredCache
import TieredCacheFoundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A `URLSession` with a cache.
struct SessionClient: ForwardingClient {
    private let session: URLSession

    init(directory: URL) throws {
        TieredURLProtocol.use(try MediaCache(MediaCache.Configuration(directory: directory)))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.answerFromCache()
        // Cookies are those of the clients of the forwarder.
        configuration.httpCookieStorage = nil
        session = URLSession(configuration: configuration)
    }

    func response(
        to request: HTTPRequestHead,
        body: ByteBuffer
    ) async throws -> (HTTPResponseHead, ByteBuffer) {
        guard let url = URL(string: request.uri) else { throw URLError(.badURL) }
        var asked = URLRequest(url: url)
        asked.httpMethod = request.method.rawValue
        for (name, value) in request.headers { asked.addValue(value, forHTTPHeaderField: name) }
        if body.readableBytes > 0 { asked.httpBody = Data(body.readableBytesView) }
        let (received, response) = try await session.data(for: asked)
        guard let response = response as? HTTPURLResponse else { throw URLError(.unknown) }
        let head = HTTPResponseHead(
            version: .http1_1,
            status: HTTPResponseStatus(statusCode: response.statusCode),
            headers: HTTPHeaders(response.allHeaderFields.map { ("\($0.key)", "\($0.value)") })
        )
        return (head, ByteBuffer(bytes: received))
    }
}
