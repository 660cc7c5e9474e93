import FoundationEssentials
import SystemPackage
import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// A player proxy before a scripted origin, asked over real sockets.
final class ProxyFixture: Sendable {
    let origin: ScriptedOrigin
    let files: TemporaryDirectory
    let cache: MediaCache
    let proxy: PlayerProxy

    init(
        origin: ScriptedOrigin,
        files: TemporaryDirectory,
        fileSystem: any FileSystem = POSIXFileSystem(),
        cacheTime: any TimeSource = SystemTimeSource(),
        minimumFreeDisk: Int64 = 0,
        memoryLimit: Int64 = 64 << 20,
        _ change: (inout ProxySettings) -> Void = { _ in }
    ) async throws {
        self.origin = origin
        self.files = files
        var configuration = MediaCache.Configuration(path: files.appending("cache"))
        configuration.minimumFreeDisk = minimumFreeDisk
        configuration.memoryLimit = memoryLimit
        configuration.respondsToMemoryPressure = false
        configuration.retries = 1
        // On a machine that has other things to do.
        configuration.timeout = .seconds(300)
        configuration.timeSource = cacheTime
        cache = try MediaCache(configuration, fileSystem: fileSystem)
        var settings = ProxySettings()
        settings.lingerTime = .milliseconds(10)
        settings.originTimeout = .seconds(300)
        settings.stallTimeout = .seconds(300)
        change(&settings)
        do throws(CacheError) {
            proxy = try await PlayerProxy.start(
                cache: cache,
                directory: configuration.directory,
                settings: settings
            )
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    /// Whether so many bytes come from the cache; what is sent from a file counts when it was sent,
    /// and its client may know that before.
    func bytesFromCache(_ expected: Int64) async -> Bool {
        while cache.statistics.bytesFromCache < expected { await Task.yield() }
        return cache.statistics.bytesFromCache == expected
    }

    func stop() async {
        await proxy.stop()
        await cache.shutdown()
    }

    /// Runs `body` with a fixture, which is stopped afterwards.
    static func run(
        fileSystem: any FileSystem = POSIXFileSystem(),
        cacheTime: any TimeSource = SystemTimeSource(),
        minimumFreeDisk: Int64 = 0,
        memoryLimit: Int64 = 64 << 20,
        _ change: (inout ProxySettings) -> Void = { _ in },
        _ body: (ProxyFixture) async throws -> Void
    ) async throws {
        let origin = try await ScriptedOrigin.start()
        let files = try TemporaryDirectory("tieredcache-proxy")
        let fixture = try await ProxyFixture(
            origin: origin,
            files: files,
            fileSystem: fileSystem,
            cacheTime: cacheTime,
            minimumFreeDisk: minimumFreeDisk,
            memoryLimit: memoryLimit,
            change
        )
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            await origin.stop()
            throw error
        }
        await fixture.stop()
        await origin.stop()
    }

    /// The request target for a path at the origin.
    func target(_ path: String) throws -> String {
        let place = try #require(URL(string: origin.url(path)))
        let url = try proxy.url(for: place).absoluteString
        return String(url.dropFirst("http://127.0.0.1:\(proxy.port)".count))
    }

    /// The beginning of all URLs of the proxy.
    var base: String { proxy.base.absoluteString }

    /// Asks by a connection of its own.
    func ask(
        _ path: String,
        _ fields: String...,
        method: String = "GET",
        didReceiveHead: @escaping @Sendable () -> Void = {}
    ) async throws -> RawResponse {
        let (port, target) = (proxy.port, try target(path))
        return try await onThread {
            let connection = try RawConnection(port: port)
            let lines = ["\(method) \(target) HTTP/1.1", "Host: 127.0.0.1:\(port)"] + fields
            try connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
            return try connection.receiveResponse(
                toHead: method == "HEAD",
                didReceiveHead: didReceiveHead
            )
        }
    }

    /// Asks for one of the proxy's own pages.
    func request(
        _ method: String,
        _ page: String,
        _ body: String = ""
    ) async throws -> RawResponse {
        let port = proxy.port
        let target = String(base.dropFirst("http://127.0.0.1:\(port)".count)) + page
        return try await onThread {
            let connection = try RawConnection(port: port)
            try connection.send(
                "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            return try connection.receiveResponse()
        }
    }

    /// How often the origin was asked for a path.
    func requests(_ path: String) -> Int { origin.log.exchanges(for: path).count }
}

extension OriginResource {
    /// Generated bytes, fresh for an hour.
    static func fresh(_ length: Int64, seed: UInt64 = 3) -> OriginResource {
        .generated(length: length, seed: seed, cacheControl: "max-age=3600")
    }
}
