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
}
