import FoundationEssentials
import HTTPTypes
import TieredCache
import TieredCacheTesting

/// A test of an application: the origin fails as the script says, the application must not.
enum ScriptedTest: Example {
    static let usage = "scripted DIRECTORY"

    static func run(_ arguments: [String]) async throws {
        guard let directory = arguments.first else { throw UsageError() }
        let origin = try await ScriptedOrigin.start()
        origin.serve(
            "/film",
            .generated(length: 1 << 20),
            .first(1, .cut(after: 300_000)).then(1, .status(503, retryAfter: "0"))
        )
        let cache = try MediaCache(MediaCache.Configuration(directory: URL(filePath: directory)))

        let film = try await application(origin.url("/film"), cache)

        let isRight = origin.resource("/film")?.generatedBody?.bytes() == Array(film)
        print("\(film.count) bytes, each of them right: \(isRight)")
        for exchange in origin.log.exchanges {
            let range = exchange.fields[.range] ?? "all"
            print("asked for \(range), got \(exchange.status ?? 0): \(exchange.outcome)")
        }
        await cache.shutdown()
        await origin.stop()
    }

    /// What is tested: it knows no test.
    private static func application(_ url: String, _ cache: MediaCache) async throws -> Data {
        try await cache.data(for: CacheRequest(url))
    }
}
