import FoundationEssentials
import TieredCache

/// A film that is watched while it is on its way.
final class WatchedFilm: Sendable {
    let cache: MediaCache
    let film: CacheRequest

    init(_ url: URL, cache: MediaCache) {
        self.cache = cache
        film = CacheRequest(url)
    }
}
