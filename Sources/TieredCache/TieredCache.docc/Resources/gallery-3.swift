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
}
