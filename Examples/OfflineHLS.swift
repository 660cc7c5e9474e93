import HTTPCaching
import TieredCache

/// A film in segments for a journey: playlists, segments and keys are stored, and pinned.
enum OfflineHLS: Example {
    static let usage = "hls PLAYLIST-URL"

    static func run(_ arguments: [String]) async throws {
        guard let url = arguments.first else { throw UsageError() }
        let cache = try MediaCache()
        let parts = try await parts(of: pinned(url), in: cache)
        let batch = try await cache.downloads.start(parts)
        let outcome = await batch.wait()
        print("\(outcome.finished) of \(outcome.downloads) stored, \(outcome.bytes) bytes")
        if let failure = outcome.failures.first { throw failure.problem.error }
        await batch.acknowledge()

        // On the journey: the policy forbids every request to the origin.
        var count = 0
        for var part in parts {
            part.policy = .cacheOnly
            count += try await cache.data(for: part).count
        }
        print("\(count) bytes without a network")
        await cache.shutdown()
    }

    private static func pinned(_ url: String) throws -> CacheRequest {
        var request = try CacheRequest(url)
        request.options.insert(.pinned)
        return request
    }

    /// A playlist and all that it names; playlists that it names are read, too.
    private static func parts(
        of playlist: CacheRequest,
        in cache: MediaCache
    ) async throws -> [CacheRequest] {
        let response = try await cache.response(for: playlist)
        let text = String(decoding: try await response.body.collect(), as: UTF8.self)
        guard text.hasPrefix("#EXTM3U") else {
            throw CacheError(.originFailed, "\(playlist.target) is no playlist")
        }
        var parts = [playlist]
        for line in text.split(whereSeparator: \.isNewline) {
            // A line without # is a reference; a tag may have one as an attribute.
            let isTag = line.hasPrefix("#")
            let attribute = line.firstMatch(of: /URI="([^"]*)"/)?.1
            guard let reference = isTag ? attribute : line else { continue }
            let part = try pinned(
                response.finalTarget.resolving(reference: String(reference)).string
            )
            let isPlaylist = part.target.path.hasSuffix(".m3u8")
            parts += isPlaylist ? try await self.parts(of: part, in: cache) : [part]
        }
        return parts
    }
}
