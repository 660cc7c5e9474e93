import FoundationEssentials
import HTTPTypes
import SystemPackage
import Testing
import TieredCache
import TieredCacheProxy
import TieredCacheTesting

/// An origin with films, a cache, and the proxy between it and a player.
struct PlayerStage: Sendable {
    let origin: ScriptedOrigin
    let cache: MediaCache
    let proxy: PlayerProxy
    let media: MediaFiles
    private let expected = Expected()

    /// What is expected of the bytes that were fetched, compared once all transfers have ended.
    private final class Expected: Sendable {
        struct Amount: Sendable {
            let player: String
            let isOfOtherProcess: Bool
            let limit: @Sendable (Int64) -> Int64
            let place: SourceLocation
        }
        let amounts = Guarded<[Amount]>([])
    }

    /// Sets the stage for the time of `body`.
    static func with(_ body: @Sendable (PlayerStage) async throws -> Void) async throws {
        let media = try await MediaFiles.shared
        let origin = try await ScriptedOrigin.start()
        let directory = try TemporaryDirectory("tieredcache-player")
        var configuration = MediaCache.Configuration(path: directory.appending("cache"))
        configuration.respondsToMemoryPressure = false
        configuration.minimumFreeDisk = 0
        let cache = try MediaCache(configuration)
        let proxy = try await PlayerProxy.start(cache: cache)
        let stage = PlayerStage(origin: origin, cache: cache, proxy: proxy, media: media)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(stage))
        } catch {
            result = .failure(error)
        }
        await proxy.stop()
        await cache.shutdown()
        await origin.stop()
        try result.get()
        try stage.compareAmounts()
    }

    /// Serves one of the films, or a part of one, under its own name.
    ///
    /// What lies under `folder` is for a player that asks the origin itself.
    func serve(
        _ name: String,
        under folder: String = "",
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
        origin.serve("\(folder)/\(name)", resource, script)
    }

    /// Serves a film, or a playlist and all that it may refer to.
    func servePresentation(_ name: String, under folder: String = "") throws {
        try serve(name, under: folder)
        guard name.hasSuffix(".m3u8") || name.hasSuffix(".mpd") else { return }
        let parts = media.directory.names.filter { name in
            name.hasSuffix(".ts") || name.hasSuffix(".m4s") || name == "init.mp4"
                || name == "film.key" || name.hasPrefix("dash") && name.hasSuffix(".mp4")
        }
        for part in parts { try serve(part, under: folder) }
    }

    /// The URL that the player gets.
    func url(_ name: String) throws -> String {
        try proxy.url(for: try #require(URL(string: origin.url("/\(name)")))).absoluteString
    }

    /// The URL of the status page.
    var base: String { proxy.base.absoluteString }

    /// The size of a film.
    func size(_ name: String) throws -> Int64 { Int64(try media.bytes(name).count) }

    /// What the origin was asked for of films and their parts.
    private var asked: [OriginExchange] {
        let paths = Set(media.directory.names.map { "/\($0)" })
        return origin.log.exchanges.filter { paths.contains($0.path) }
    }

    /// Says how much was fetched for a player, and that of what it needed hardly a byte came twice.
    ///
    /// - Parameter isOfOtherProcess: whether the player has the cache of another process, of which
    ///   only the origin can tell.
    func expectEachByteOnce(
        _ player: String,
        isOfOtherProcess: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        expect(player, isOfOtherProcess, sourceLocation) { $0 + 128 << 10 }
    }

    /// Says how much was fetched for a player from an origin that cuts: at most a fifth more.
    func expectLittleTwice(
        _ player: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        expect(player, false, sourceLocation) { $0 * 12 / 10 }
    }

    private func expect(
        _ player: String,
        _ isOfOtherProcess: Bool,
        _ place: SourceLocation,
        atMost limit: @escaping @Sendable (_ needed: Int64) -> Int64
    ) {
        let amount = Expected.Amount(
            player: player,
            isOfOtherProcess: isOfOtherProcess,
            limit: limit,
            place: place
        )
        expected.amounts.withLock { $0.append(amount) }
    }

    /// Compares what the cache has received with the bytes of all that it has asked for, once each.
    ///
    /// Not what the origin has sent: where a player jumps, a transfer ends in the middle of its
    /// range, and its rest may be in the buffers of the socket by then.
    private func compareAmounts() throws {
        let asked = asked
        let needed = try Set(asked.map(\.path)).reduce(0) { sum, path in
            sum + (try size(String(path.dropFirst())))
        }
        for amount in expected.amounts.withLock({ $0 }) {
            let fetched =
                amount.isOfOtherProcess
                ? asked.reduce(0) { $0 + $1.bodyBytesWritten } : cache.statistics.bytesFromOrigin
            PlayerFigures.tell(amount.player, fetched: fetched, needed: needed)
            #expect(
                needed > 0 && fetched <= amount.limit(needed),
                "\(fetched) fetched of \(needed): \(asked.map(Self.account))",
                sourceLocation: amount.place
            )
        }
    }

    /// What was asked for and how much of it was sent, for a message.
    private static func account(of exchange: OriginExchange) -> String {
        "\(exchange.target) \(exchange.fields[.range] ?? "whole"):"
            + " \(exchange.bodyBytesWritten) \(exchange.outcome)"
    }

    /// Does `body`, during which the origin is asked for no film and no part of one.
    func withoutOrigin(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async throws {
        let before = asked.count
        try await body()
        let after = asked
        #expect(
            after.count == before,
            "\(after.dropFirst(before).map(\.target))",
            sourceLocation: sourceLocation
        )
    }

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
