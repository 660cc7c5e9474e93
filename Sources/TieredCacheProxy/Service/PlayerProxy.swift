public import FoundationEssentials
package import HTTPCaching
import Logging
import SystemPackage
public import TieredCache

/// A server on 127.0.0.1 through which any media player plays from the cache.
///
/// ```swift
/// let cache = try MediaCache(configuration)
/// let proxy = try await PlayerProxy.start(cache: cache, directory: configuration.directory)
/// player.open(try proxy.url(for: filmURL))
/// ```
///
/// Listens on loopback only. A URL without the token gets 404, a request for another host is
/// refused. Port and token are stored in the cache directory, so that URLs stay valid.
public final class PlayerProxy: Sendable {
    let server: HTTPServer
    let address: ProxyAddress
    private let rules: CurrentRules
    private let time: any TimeSource

    private init(
        server: HTTPServer,
        address: ProxyAddress,
        rules: CurrentRules,
        time: any TimeSource
    ) {
        self.server = server
        self.address = address
        self.rules = rules
        self.time = time
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - cache: the cache; the caller shuts it down, after the proxy.
    ///   - directory: the directory in which port and token are stored; nil to store them nowhere.
    ///   - settings: the port, the token, time limits.
    /// - Returns: the proxy, ready for requests.
    /// - Throws: `.localStorage` if the port is in use; `.invalidArgument` for an invalid port or
    ///   token, or a directory that is no `file` URL.
    public static func start(
        cache: MediaCache,
        directory: URL? = nil,
        settings: ProxySettings = ProxySettings()
    ) async throws(CacheError) -> PlayerProxy {
        let directory = try path(directory)
        let kept = await identity(in: directory, of: cache)
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
        await keep(address, replacing: kept, in: directory, cache: cache, settings: settings)
        return PlayerProxy(
            server: server,
            address: address,
            rules: responder.current,
            time: settings.timeSource
        )
    }

    private static func path(_ directory: URL?) throws(CacheError) -> FilePath? {
        guard let directory else { return nil }
        guard let path = FilePath(fileURL: directory) else {
            throw CacheError(.invalidArgument, "'\(directory)' is not the URL of a directory here")
        }
        return path
    }

    private static func identity(
        in directory: FilePath?,
        of cache: MediaCache
    ) async -> ProxyIdentity {
        guard let directory else { return ProxyIdentity() }
        return await cache.writers.run { ProxyIdentity.read(from: directory) }
    }

    /// Stores a new port or token; a process without the lock of the directory leaves the file to
    /// the owner.
    private static func keep(
        _ address: ProxyAddress,
        replacing kept: ProxyIdentity,
        in directory: FilePath?,
        cache: MediaCache,
        settings: ProxySettings
    ) async {
        var identity = kept
        if settings.port == nil { identity.port = address.port }
        if settings.token == nil { identity.token = address.token }
        guard let directory, identity != kept, cache.storageError == nil else { return }
        do {
            try await cache.writers.run { [identity] in try identity.write(to: directory) }
        } catch {
            settings.logger.warning(
                "port and token cannot be kept; they will be others after a restart",
                metadata: ["error": "\(error)"]
            )
        }
    }

    /// The port.
    public var port: Int { address.port }

    /// The URL of the status page, `http://127.0.0.1:PORT/TOKEN/`.
    ///
    /// It contains the token: keep it secret.
    public var base: URL {
        guard let url = URL(string: address.base) else {
            preconditionFailure("a token has only characters that a URL may have")
        }
        return url
    }

    /// The proxied URL of an absolute `http` or `https` URL.
    ///
    /// - Parameter url: the URL to play.
    /// - Returns: the URL for the player.
    /// - Throws: `.invalidURL` if it is no such URL.
    public func url(for url: URL) throws(CacheError) -> URL {
        let proxied = try self.url(for: url.absoluteString)
        // By default `URL` mends a text by escaping it, the escapes in it included: `%20` would
        // become `%2520`, another resource.
        guard let url = URL(string: proxied, encodingInvalidCharacters: false) else {
            throw CacheError(.invalidURL, "cannot proxy this URL: it has invalid characters")
        }
        return url
    }

    /// The same as text, as a C program has it.
    package func url(for url: String) throws(CacheError) -> String {
        try address.url(for: url)
    }

    /// Whether a URL is one of this proxy, which serves it to players and asks no origin for it.
    package func serves(_ target: TargetURI) -> Bool {
        address.isNamed(by: target.authority) && target.path.hasPrefix("/\(address.token)/")
    }

    /// Replaces ``ProxySettings/rules`` for the requests to come.
    public func setRules(_ rules: HostRules) { self.rules.replace(with: rules) }

    /// Waits until no client has been connected for some time.
    ///
    /// Looks eight times in that time, so that it may take an eighth more.
    ///
    /// - Throws: `CancellationError`.
    package func untilUnused(for duration: Duration) async throws {
        var last = server.connections.total
        var since = time.monotonicTime()
        while since.duration(to: time.monotonicTime()) < duration {
            try await time.sleep(for: duration / 8)
            let total = server.connections.total
            guard total != last || server.connections.count > 0 else { continue }
            (last, since) = (total, time.monotonicTime())
        }
    }

    /// How many clients are connected, and how many connections there ever were.
    package var clients: (connected: Int, total: Int) {
        (server.connections.count, server.connections.total)
    }

    /// Stops listening and closes all connections; responses in progress have
    /// ``ServerLimits/stopTimeout`` to end.
    public func stop() async { await server.stop() }
}
