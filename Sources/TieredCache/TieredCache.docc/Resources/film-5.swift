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

    /// The parts of the film that are stored, for a bar below the picture.
    func storedRanges() async throws -> [Range<Int64>] {
        try await cache.entry(for: film)?.storedRanges ?? []
    }

    /// Fetches what is missing, and goes on with it after a restart.
    func finish(_ report: (Double) -> Void) async throws {
        let download = try await cache.downloads.start(film)
        for await status in download.progress {
            report(status.fraction ?? 0)
            if status.state.isEnd { break }
        }
        try await download.wait()
        await download.acknowledge()
    }
}
