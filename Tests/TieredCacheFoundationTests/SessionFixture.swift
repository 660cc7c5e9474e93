import Foundation
import Testing
import TieredCache
import TieredCacheFoundation
import TieredCacheTesting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The suites about sessions, one after the other: the cache of a protocol class is one per process.
@Suite(.serialized)
enum URLSessionTests {}

/// Gives delegates bodies in pieces.
final class StreamingProtocol: TieredURLProtocol {
    override class var streams: Bool { true }
}

/// A session that is answered from a cache, and an origin on loopback.
struct SessionFixture {
    let origin: ScriptedOrigin
    let cache: MediaCache
    let session: URLSession
    /// Without the cache.
    let bare: URLSession

    static func run(
        delegate: (any URLSessionDelegate)? = nil,
        protocols: [AnyClass] = [],
        answering: TieredURLProtocol.Type = TieredURLProtocol.self,
        _ body: (SessionFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory("url-session")
        var settings = MediaCache.Configuration(path: directory.path)
        settings.retries = 1
        let cache = try MediaCache(settings)
        TieredURLProtocol.use(cache)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.answerFromCache(answering)
        configuration.protocolClasses = protocols + (configuration.protocolClasses ?? [])
        let fixture = SessionFixture(
            origin: origin,
            cache: cache,
            session: URLSession(
                configuration: configuration,
                delegate: delegate,
                delegateQueue: nil
            ),
            bare: URLSession(configuration: .ephemeral)
        )
        try await body(fixture)
        fixture.session.finishTasksAndInvalidate()
        fixture.bare.finishTasksAndInvalidate()
        TieredURLProtocol.use(nil)
        await cache.shutdown()
        await origin.stop()
    }

    func request(
        _ path: String,
        _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy
    ) throws -> URLRequest {
        let url = try #require(URL(string: origin.url(path)))
        return URLRequest(url: url, cachePolicy: policy)
    }

    /// Loads a request by the session.
    func load(_ request: URLRequest) async throws -> (text: String, response: HTTPURLResponse) {
        let (data, response) = try await session.data(for: request)
        return (String(decoding: data, as: UTF8.self), try #require(response as? HTTPURLResponse))
    }

    func requests(for path: String) -> Int { origin.log.exchanges(for: path).count }
}

extension HTTPURLResponse {
    /// The field `Cache-Status`.
    var cacheStatus: String { value(forHTTPHeaderField: "Cache-Status") ?? "" }
}
