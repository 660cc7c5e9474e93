import TieredCache

/// What the cache does while it does it, and the sums in the end.
enum LiveStatistics: Example {
    static let usage = "statistics URL..."

    static func run(_ arguments: [String]) async throws {
        let requests = try arguments.map { try CacheRequest($0) }
        guard !requests.isEmpty else { throw UsageError() }
        let cache = try MediaCache()
        let events = cache.events()
        let reporting = Task {
            // One line for each event, with the URL; its query is left out.
            for await event in events { print(event) }
        }
        for request in requests + requests {
            _ = try await cache.data(for: request)
        }
        let usage = try await cache.usage()
        // Ends the stream of events.
        await cache.shutdown()
        await reporting.value

        let counters = cache.statistics
        print("hits \(counters.hits), misses \(counters.misses)")
        print("hit ratio \(Int((counters.hitRatio ?? 0) * 100)) %")
        print("\(counters.bytesFromOrigin) bytes from the origin, \(usage.entries) entries on disk")
    }
}
