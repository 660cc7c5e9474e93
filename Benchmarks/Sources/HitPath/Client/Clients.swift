import AsyncHTTPClient
import Foundation
import FoundationNetworking
import NIOCore
import TieredCache
import TieredCacheFoundation
import TieredCacheHTTPClient

/// Gets a URL and returns how long its body is.
typealias Getter = @Sendable (_ url: String) async throws -> Int

/// Sends a request to the end of its response.
typealias Executor = @Sendable (HTTPClientRequest) async throws -> HTTPClientResponse

/// The clients of a row.
///
/// One cache is below all of ours: they store into the same directory in turn.
struct Clients {
    /// How many URLs are asked for again and again.
    static let urls = 200

    private let origin: String
    private let cache: MediaCache
    private let client = HTTPClient(eventLoopGroupProvider: .singleton)
    private let sessions:
        (cached: URLSession, urlCache: URLSession, bare: URLSession, constant: URLSession)
    private let urlCache: URLCache

    init(origin: String, directory: String) throws {
        self.origin = origin
        var settings = MediaCache.Configuration(directory: URL(filePath: "\(directory)/cache"))
        settings.diskLimit = 16 << 30
        settings.respondsToMemoryPressure = false
        cache = try MediaCache(settings)
        TieredURLProtocol.use(cache)
        let cached = URLSessionConfiguration.default
        cached.answerFromCache()
        let peer = URLSessionConfiguration.default
        urlCache = URLCache(
            memoryCapacity: 64 << 20,
            diskCapacity: 256 << 20,
            diskPath: "\(directory)/urlcache"
        )
        peer.urlCache = urlCache
        let bare = URLSessionConfiguration.default
        bare.urlCache = nil
        let constant = URLSessionConfiguration.default
        constant.urlCache = nil
        constant.protocolClasses = [ConstantProtocol.self]
        sessions = (
            URLSession(configuration: cached), URLSession(configuration: peer),
            URLSession(configuration: bare), URLSession(configuration: constant)
        )
    }

    func shutDown() throws {
        for session in [sessions.cached, sessions.urlCache, sessions.bare, sessions.constant] {
            session.finishTasksAndInvalidate()
        }
        TieredURLProtocol.use(nil)
        try client.syncShutdown()
        try Blocking.run { [cache] in await cache.shutdown() }
    }

    var cachedSession: Getter { Self.getter(sessions.cached) }
    var urlCacheSession: Getter { Self.getter(sessions.urlCache) }
    var bareSession: Getter { Self.getter(sessions.bare) }
    var constantSession: Getter { Self.getter(sessions.constant) }

    /// Stores in the `URLCache` what a session itself stores there on no system but Apple's.
    func fillURLCache() throws {
        try Blocking.run { [urlCache, origin, session = sessions.bare] in
            for number in 0..<Self.urls {
                guard let url = URL(string: "\(origin)/small/\(number)") else { continue }
                let request = URLRequest(url: url)
                let (data, response) = try await session.data(for: request)
                let stored = CachedURLResponse(response: response, data: data)
                urlCache.storeCachedResponse(stored, for: request)
            }
        }
    }

    private static func getter(_ session: URLSession) -> Getter {
        { text in
            guard let url = URL(string: text) else { throw BenchFailure("\(text) is no URL") }
            let (data, response) = try await session.data(for: URLRequest(url: url))
            guard (response as? HTTPURLResponse)?.statusCode == 200 else {
                throw BenchFailure("\(text) said \(response)")
            }
            return data.count
        }
    }

    var cachingClient: Executor {
        let client = CachingHTTPClient(client, cache: cache)
        return { try await client.execute($0, timeout: .seconds(30)) }
    }

    var bareClient: Executor {
        { [client] in try await client.execute($0, timeout: .seconds(30)) }
    }

    private static func getter(_ execute: @escaping Executor) -> Getter {
        { try await execute(HTTPClientRequest(url: $0)).length }
    }

    /// Requests with content that a cache passes on.
    func posts(_ name: String, through execute: @escaping Executor) -> Contender {
        contender(
            name,
            Meter(isRepeating: true, width: 6) { [origin] _ in
                var request = HTTPClientRequest(url: "\(origin)/post")
                request.method = .POST
                request.body = .bytes(ByteBuffer(repeating: 7, count: 256))
                try await Self.check(execute(request).length)
            }
        )
    }

    /// What ours are made of.
    var engine: Getter {
        { [cache] url in try await cache.data(for: CacheRequest(url)).count }
    }

    /// The same URLs again and again, so many at a time.
    func hits(_ name: String, _ width: Int, _ get: @escaping Getter) -> Contender {
        contender(
            name,
            Meter(isRepeating: true, width: width) { [origin] number in
                try await Self.check(get("\(origin)/small/\(number % Self.urls)"))
            }
        )
    }

    /// Of AsyncHTTPClient's form.
    func hits(_ name: String, _ width: Int, _ execute: @escaping Executor) -> Contender {
        hits(name, width, Self.getter(execute))
    }

    /// Of AsyncHTTPClient's form.
    func misses(_ name: String, _ execute: @escaping Executor) -> Contender {
        misses(name, Self.getter(execute))
    }

    /// URLs that are asked for once, six at a time.
    func misses(_ name: String, _ get: @escaping Getter) -> Contender {
        let path = name.filter(\.isLetter)
        return contender(
            name,
            Meter(isRepeating: false) { [origin] number in
                try await Self.check(get("\(origin)/small/\(path)/\(number)"))
            }
        )
    }

    private func contender(_ name: String, _ meter: Meter) -> Contender {
        Contender(name) { meter.run($0) }
    }

    private static func check(_ length: Int) throws {
        guard length == 4096 else { throw BenchFailure("a body of \(length) bytes") }
    }
}

extension HTTPClientResponse {
    /// How long the body is, which is collected.
    fileprivate var length: Int {
        get async throws {
            guard status == .ok else { throw BenchFailure("status \(status)") }
            return try await body.collect(upTo: 2 << 20).readableBytes
        }
    }
}
