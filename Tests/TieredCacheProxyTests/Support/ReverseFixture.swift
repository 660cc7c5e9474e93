import Testing
import TieredCache
import TieredCacheTesting

@testable import TieredCacheProxy

/// A reverse proxy before an origin that the test plays, asked over real sockets.
final class ReverseFixture: Sendable {
    /// What a test may change before the proxy starts.
    struct Options {
        var configuration: MediaCache.Configuration
        var settings = ProxySettings()
        /// Where the proxy's requests go instead of the origin, to one that cannot be reached.
        var originURL: String?
    }

    let origin: RawOrigin
    let proxy: ReverseProxy
    let cache: MediaCache
    let files: TemporaryDirectory

    private init(
        _ origin: RawOrigin,
        _ change: (inout Options) -> Void
    ) async throws {
        self.origin = origin
        files = try TemporaryDirectory("tieredcache-reverse")
        var options = Options(
            configuration: MediaCache.Configuration(path: files.appending("cache"))
        )
        options.configuration.minimumFreeDisk = 0
        options.configuration.respondsToMemoryPressure = false
        options.settings.port = 0
        // A busy machine is not what these tests are about.
        options.configuration.connectTimeout = .seconds(300)
        options.configuration.timeout = .seconds(300)
        options.settings.continueTimeout = .seconds(300)
        change(&options)
        cache = try MediaCache(options.configuration)
        do throws(CacheError) {
            proxy = try await ReverseProxy.start(
                cache: cache,
                origin: options.originURL ?? origin.url,
                settings: options.settings
            )
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    /// Runs `body` with a proxy before an origin that answers with `handler`.
    static func run(
        _ change: (inout Options) -> Void = { _ in },
        origin handler: @escaping RawOrigin.Handler,
        _ body: (ReverseFixture) async throws -> Void
    ) async throws {
        let origin = try RawOrigin(handler)
        let fixture: ReverseFixture
        do {
            fixture = try await ReverseFixture(origin, change)
        } catch {
            await origin.stop()
            throw error
        }
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    private func stop() async {
        await proxy.stop()
        await cache.shutdown()
        await origin.stop()
    }

    /// Sends `request` as it is over a connection of its own.
    ///
    /// - Returns: everything that comes until the proxy closes the connection, and whether it was
    ///   reset instead.
    func exchange(_ request: String) async throws -> (text: String, isReset: Bool) {
        let port = proxy.port
        return try await onThread {
            let connection = try RawConnection(port: port)
            do {
                try connection.send(request)
            } catch {
                // It was refused before its end; the response is there all the same.
            }
            var bytes: [UInt8] = []
            do throws(RawConnection.Failure) {
                while case let more = try connection.receive(), !more.isEmpty { bytes += more }
            } catch {
                return (String(decoding: bytes, as: UTF8.self), true)
            }
            return (String(decoding: bytes, as: UTF8.self), false)
        }
    }

    /// Asks by a connection of its own and reads one response.
    func ask(
        _ target: String,
        _ fields: String...,
        method: String = "GET",
        body: String? = nil
    ) async throws -> RawResponse {
        let port = proxy.port
        var lines = ["\(method) \(target) HTTP/1.1", "Host: a", "Connection: close"] + fields
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        let request = lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
        return try await onThread {
            let connection = try RawConnection(port: port)
            try connection.send(request)
            return try connection.receiveResponse(toHead: method == "HEAD")
        }
    }
}

extension RawConnection {
    /// Sends a 200 with a length.
    func answer(_ body: String, _ fields: String..., status: String = "200 OK") throws {
        let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.utf8.count)"]
        try send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    }

    /// Reads a body as its head frames it.
    func receiveBody(of request: RawRequest) throws -> [UInt8] {
        if request["transfer-encoding"] == "chunked" { return try receiveChunkedBody() }
        return try receive(exactly: request["content-length"].flatMap { Int($0) } ?? 0)
    }
}
