import FoundationEssentials
import TieredCache
import TieredCacheImages
import TieredCacheTesting

/// Takes any text that begins with `image` for a picture.
struct TextDecoder: ImageDecoding {
    struct NoPicture: Error {}

    struct Picture: Hashable, Sendable {
        let text: String
        let size: ImageSize?
    }

    func picture(of bytes: Data, size: ImageSize?) throws -> Picture {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix("image") else { throw NoPicture() }
        return Picture(text: text, size: size)
    }

    func cost(of picture: Picture) -> Int { 1000 }
}

/// An origin with pictures, a cache and a pipeline.
struct ImageFixture: Sendable {
    let origin: ScriptedOrigin
    let cache: MediaCache
    let pipeline: ImagePipeline<TextDecoder>

    static func run(
        _ change: (inout ImagePipeline<TextDecoder>.Options) -> Void = { _ in },
        isInMemory: Bool = false,
        memoryLimit: Int64 = 1 << 20,
        time: any TimeSource = SystemTimeSource(),
        _ body: (ImageFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory("images")
        var configuration = MediaCache.Configuration(path: directory.path)
        if isInMemory { configuration.path = nil }
        configuration.minimumFreeDisk = 0
        configuration.retries = 1
        configuration.respondsToMemoryPressure = false
        configuration.memoryLimit = memoryLimit
        configuration.timeSource = time
        let cache = try MediaCache(configuration)
        var options = ImagePipeline<TextDecoder>.Options()
        change(&options)
        let pipeline = ImagePipeline(cache: cache, decoder: TextDecoder(), options: options)
        do {
            try await body(ImageFixture(origin: origin, cache: cache, pipeline: pipeline))
        } catch {
            await cache.shutdown()
            await origin.stop()
            throw error
        }
        await cache.shutdown()
        await origin.stop()
    }

    /// Serves a picture, by default fresh for an hour.
    func serve(
        _ path: String,
        cacheControl: String? = "max-age=3600",
        _ script: OriginScript = OriginScript()
    ) {
        origin.serve(path, .text("image \(path)", cacheControl: cacheControl), script)
    }

    func request(_ path: String, _ size: ImageSize? = nil) throws -> ImageRequest {
        try ImageRequest(origin.url(path), size: size)
    }

    func requests(for path: String) -> Int { origin.log.exchanges(for: path).count }
}
