import Foundation
import TieredCache
import TieredCacheFoundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// `URLSession` with a cache: what is one line of its configuration changes no call.
enum CachedSession: Example {
    static let usage = "session URL"

    static func run(_ arguments: [String]) async throws {
        guard let url = arguments.first.flatMap({ URL(string: $0) }) else { throw UsageError() }
        let cache = try MediaCache()
        TieredURLProtocol.use(cache)
        let configuration = URLSessionConfiguration.default
        configuration.answerFromCache()
        let session = URLSession(configuration: configuration)
        for method in ["GET", "GET", "POST", "GET"] {
            var request = URLRequest(url: url)
            request.httpMethod = method
            let (body, response) = try await session.data(for: request)
            let answer = response as? HTTPURLResponse
            // None: the session has asked by itself.
            let status = answer?.value(forHTTPHeaderField: "Cache-Status") ?? "past the cache"
            print("\(method): \(answer?.statusCode ?? 0), \(body.count) bytes, \(status)")
        }
        session.finishTasksAndInvalidate()
        TieredURLProtocol.use(nil)
        await cache.shutdown()
    }
}
