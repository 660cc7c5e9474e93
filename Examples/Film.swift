import FoundationEssentials
import Subprocess
import TieredCache
import TieredCacheProxy

/// A film for a player that takes a URL: it starts and seeks while the film is on its way.
///
/// `film https://example.com/film.mp4 mpv --fullscreen`, for example.
enum Film: Example {
    static let usage = "film URL PLAYER [ARGUMENT...]"

    static func run(_ arguments: [String]) async throws {
        guard arguments.count >= 2, let url = URL(string: arguments[0]) else {
            throw UsageError()
        }
        let configuration = MediaCache.Configuration()
        let cache = try MediaCache(configuration)
        let proxy = try await PlayerProxy.start(cache: cache, directory: configuration.directory)

        let player = try await Subprocess.run(
            .name(arguments[1]),
            arguments: Arguments(
                arguments.dropFirst(2) + [try proxy.url(for: url).absoluteString]
            ),
            output: .discarded
        )
        await proxy.stop()
        await cache.shutdown()
        // All transfers have ended, and count.
        let counters = cache.statistics
        print("the player ended: \(player.terminationStatus)")
        print(
            "\(counters.bytesFromCache) bytes from the cache, "
                + "\(counters.bytesFromOrigin) from the origin"
        )
    }
}
