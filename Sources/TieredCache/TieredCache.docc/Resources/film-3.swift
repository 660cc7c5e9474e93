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

    /// The bytes at a place that the viewer seeks; fewer only at the end of the film.
    func piece(at offset: Int64, count: Int) async throws -> Data {
        let reader = try await cache.reader(for: film, at: offset)
        var piece = Data()
        while piece.count < count {
            let bytes = try await reader.read(count: count - piece.count)
            if bytes.isEmpty { break }
            piece.append(bytes)
        }
        return piece
    }
}
