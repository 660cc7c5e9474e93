import HTTPCaching
import TieredCache

/// A gallery of posters: all at once, and without waiting where they are in memory.
enum Gallery: Example {
    static let usage = "gallery URL..."

    static func run(_ arguments: [String]) async throws {
        let posters = try arguments.map { try CacheRequest($0) }
        guard !posters.isEmpty else { throw UsageError() }
        let cache = try MediaCache()
        try await withThrowingTaskGroup { group in
            for poster in posters {
                group.addTask {
                    let bytes = try await cache.data(for: poster)
                    print("\(poster.target.path): \(bytes.count) bytes")
                }
            }
            try await group.waitForAll()
        }
        let counters = cache.statistics
        print("\(counters.diskHits) from disk, \(counters.misses) from the origin")

        // The list is scrolled back: these calls do not wait, so that a view can make them.
        let shown = posters.compactMap { cache.cachedData(for: $0) }
        print("\(shown.count) of \(posters.count) in memory")
        await cache.shutdown()
    }
}
