import HTTPTypes
import SystemPackage
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// An origin with films, a cache, and the proxy between it and a player.
struct PlayerStage: Sendable {
    let origin: ScriptedOrigin
    let cache: TieredCache
    let proxy: PlayerProxy
    let media: MediaFiles

    /// Sets the stage for the time of `body`.
    static func with(_ body: @Sendable (PlayerStage) async throws -> Void) async throws {
        let media = try await MediaFiles.shared
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory("tieredcache-player")
        var configuration = Configuration(directory: directory.appending("cache"))
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        let cache = try TieredCache(configuration)
        let proxy = try await PlayerProxy.start(cache: cache)
        let result: Result<Void, any Error>
        do {
            let stage = PlayerStage(origin: origin, cache: cache, proxy: proxy, media: media)
            result = .success(try await body(stage))
        } catch {
            result = .failure(error)
        }
        await proxy.stop()
        await cache.shutdown()
        await origin.stop()
        try result.get()
    }

    /// Serves one of the films, or a part of one, under its own name.
    func serve(
        _ name: String,
        _ script: OriginScript = OriginScript(),
        _ change: (inout OriginResource) -> Void = { _ in }
    ) throws {
        var fields = HTTPFields()
        fields[.cacheControl] = "max-age=3600"
        fields[.accessControlAllowOrigin] = "*"
        var resource = OriginResource(
            .bytes(try media.bytes(name)),
            contentType: Self.type(of: name),
            fields: fields
        )
        change(&resource)
        origin.serve("/\(name)", resource, script)
    }

    /// Serves a playlist and all that it may refer to.
    func servePresentation(_ playlist: String) throws {
        try serve(playlist)
        let parts = media.directory.names.filter { name in
            name.hasSuffix(".ts") || name.hasSuffix(".m4s") || name == "init.mp4"
                || name == "film.key" || name.hasPrefix("dash") && name.hasSuffix(".mp4")
        }
        for part in parts { try serve(part) }
    }

    /// The URL that the player gets.
    func url(_ name: String) throws -> String {
        try proxy.url(for: origin.url("/\(name)"))
    }

    /// The size of a film.
    func size(_ name: String) throws -> Int64 { Int64(try media.bytes(name).count) }

    private static func type(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "mp4", "m4s": "video/mp4"
        case "mkv": "video/x-matroska"
        case "m3u8": "application/vnd.apple.mpegurl"
        case "mpd": "application/dash+xml"
        case "ts": "video/mp2t"
        default: "application/octet-stream"
        }
    }
}
