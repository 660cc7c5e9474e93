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

    /// Plays the film from its beginning, as fast as `show` takes it.
    ///
    /// Returns how many bytes were stored before.
    func play(_ show: (Data) async throws -> Void) async throws -> Int64 {
        let response = try await cache.response(for: film)
        for try await chunk in response.body {
            try await show(chunk)
        }
        return response.bytesFromCache
    }
}
