import Logging
import ServiceLifecycle
import TieredCache
import TieredCacheProxy
import UnixSignals

/// A caching reverse proxy in ten lines, until a signal ends it.
enum CachingProxy: Example {
    static let usage = "proxy ORIGIN"

    static func run(_ arguments: [String]) async throws {
        guard let origin = arguments.first else { throw UsageError() }
        let cache = try MediaCache()
        let proxy = try await ReverseProxy.start(cache: cache, origin: origin)
        print("\(proxy.base) is \(origin)")
        try await ServiceGroup(
            services: [ProxyService { await proxy.stop() }],
            gracefulShutdownSignals: [.sigint, .sigterm],
            logger: Logger(label: "proxy")
        ).run()
        print("hits: \(cache.statistics.hits), misses: \(cache.statistics.misses)")
        await cache.shutdown()
    }
}
