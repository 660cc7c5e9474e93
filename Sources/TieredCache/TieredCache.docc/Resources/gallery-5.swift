import FoundationEssentials
import HTTPCaching
import TieredCache

/// The posters of a gallery, with and without a network.
final class OfflineGallery: Sendable {
    let cache: MediaCache

    init(directory: URL) throws {
        var configuration = MediaCache.Configuration(directory: directory)
        configuration.diskLimit = 200 << 20
        cache = try MediaCache(configuration)
    }

    /// The poster from memory, disk or the origin, whichever has it first.
    func poster(_ url: URL) async throws -> Data {
        try await cache.data(for: CacheRequest(url))
    }

    /// The poster if it is in memory; never waits.
    func posterAtOnce(_ url: URL) -> Data? {
        cache.cachedData(for: CacheRequest(url))
    }

    /// Stores posters, and keeps them until they are released.
    ///
    /// Returns how many are stored.
    func keep(_ urls: [URL]) async throws -> Int {
        let requests = urls.map { url in
            var request = CacheRequest(url)
            request.options.insert(.pinned)
            return request
        }
        let batch = try await cache.downloads.start(requests)
        let outcome = await batch.wait()
        await batch.acknowledge()
        return outcome.finished
    }

    /// The poster if it is stored; sends no request.
    func posterOffline(_ url: URL) async throws -> Data? {
        var request = CacheRequest(url)
        request.policy = .cacheOnly
        do {
            return try await cache.data(for: request)
        } catch {
            guard error.code == .notCached else { throw error }
            return nil
        }
    }
}
