public import FoundationEssentials
import HTTPCaching
import Logging
import SystemPackage
public import TieredCache

/// A server on 127.0.0.1 through which any player plays from the cache.
///
/// ```swift
/// let cache = try MediaCache(configuration)
/// let proxy = try await PlayerProxy.start(cache: cache, directory: configuration.directory)
/// player.open(try proxy.url(for: "https://example.com/film.mp4"))
/// ```
///
/// Listens on loopback only. A URL without the token is not found, a request for another host is
/// refused. Port and token are kept with the cache directory.
public final class PlayerProxy: Sendable {
    let server: HTTPServer
    private let address: ProxyAddress

    private init(_ server: HTTPServer, _ address: ProxyAddress) {
        self.server = server
        self.address = address
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - cache: what answers; it stays the caller's to shut down, after the proxy.
    ///   - directory: where port and token are kept, nil for nowhere.
    ///   - settings: port, token and limits.
    /// - Returns: the proxy, ready for requests.
    /// - Throws: `.localStorage` if the port is taken, `.invalidArgument`.
    public static func start(
        cache: MediaCache,
        directory: URL? = nil,
        settings: ProxySettings = ProxySettings()
    ) async throws(CacheError) -> PlayerProxy {
        let directory = directory.map { FilePath($0.path(percentEncoded: false)) }
        let kept = directory.map { ProxyIdentity.read(from: $0) } ?? ProxyIdentity()
        let token = settings.token ?? kept.token ?? ProxyAddress.randomToken()
        guard ProxyAddress.isToken(token) else {
            throw CacheError(
                .invalidArgument,
                "the token must have \(ProxyAddress.minimumTokenLength) to 256 letters, digits "
                    + "or -._~; without one a random token is made"
            )
        }
        let responder = PlayerResponder(cache: cache, settings: settings, token: token)
        let server = try await LoopbackPort.listen(
            on: settings.port,
            preferring: kept.port,
            responder: responder,
            settings: settings
        )
        let address = ProxyAddress(port: server.port, token: token)
        responder.address.set(address)
        keep(address, kept, directory, cache, settings)
        return PlayerProxy(server, address)
    }

    /// Writes down what is new; a guest leaves the file to the owner.
    private static func keep(
        _ address: ProxyAddress,
        _ kept: ProxyIdentity,
        _ directory: FilePath?,
        _ cache: MediaCache,
        _ settings: ProxySettings
    ) {
        var identity = kept
        if settings.port == nil { identity.port = address.port }
        if settings.token == nil { identity.token = address.token }
        guard let directory, identity != kept, cache.storageError == nil else { return }
        do {
            try identity.write(to: directory)
        } catch {
            settings.logger.warning(
                "port and token cannot be kept; they will be others after a restart",
                metadata: ["error": "\(error)"]
            )
        }
    }

    /// The port.
    public var port: Int { address.port }

    /// `http://127.0.0.1:PORT/TOKEN/`: the page that shows the cache; a secret.
    public var base: String { address.base }

    /// The proxied URL of an absolute `http` or `https` URL.
    ///
    /// - Parameter url: what is to be played.
    /// - Returns: the URL for the player.
    /// - Throws: `.invalidURL`.
    public func url(for url: String) throws(CacheError) -> String {
        do {
            return address.url(of: try TargetURI(url))
        } catch {
            throw CacheError(.invalidURL, "cannot proxy this URL: \(error)")
        }
    }

    /// Listens no more and closes all connections; the answers under way have a little time.
    public func stop() async { await server.stop() }
}
