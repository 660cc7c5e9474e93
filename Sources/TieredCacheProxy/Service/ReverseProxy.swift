public import FoundationEssentials
import HTTPCaching
public import TieredCache

/// A caching reverse proxy of one origin on 127.0.0.1 (RFC 9110 §3.7, RFC 9111).
///
/// Forwards every method, path, query and end-to-end field. The configuration of the cache decides
/// whether it is private or shared.
public final class ReverseProxy: Sendable {
    private let server: HTTPServer

    private init(_ server: HTTPServer) {
        self.server = server
    }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - cache: the cache; the caller shuts it down, after the proxy.
    ///   - origin: the URL that `/` maps to.
    ///   - settings: the port, time limits, further hosts.
    /// - Returns: the proxy, ready for requests.
    /// - Throws: `.invalidURL` for an unusable origin, `.invalidArgument` if the origin is this
    ///   proxy, `.localStorage` if the port is in use.
    public static func start(
        cache: MediaCache,
        origin: String,
        settings: ProxySettings = ProxySettings()
    ) async throws(CacheError) -> ReverseProxy {
        let target: ReverseTarget?
        do {
            target = try ReverseTarget(url: origin)
        } catch {
            throw CacheError(.invalidURL, "cannot be a proxy of this origin: \(error)")
        }
        guard let target else {
            throw CacheError(.invalidURL, "the URL of an origin has no query")
        }
        let server = try await LoopbackPort.listen(
            on: settings.port,
            preferring: nil,
            responder: ReverseResponder(
                cache: cache,
                target: target,
                hosts: ReverseHosts(origin: target.root, others: settings.hosts),
                logger: settings.logger,
                continueTimeout: settings.continueTimeout,
                pseudonym: settings.pseudonym
            ),
            settings: settings
        )
        guard !target.leads(to: server.port) else {
            await server.stop()
            throw CacheError(
                .invalidArgument,
                "the origin \(origin) is this proxy itself; name another one, or another port"
            )
        }
        return ReverseProxy(server)
    }

    /// The port.
    public var port: Int { server.port }

    /// The URL of the proxy, `http://127.0.0.1:PORT/`, which maps to the origin.
    public var base: URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/") else {
            preconditionFailure("a port is a number")
        }
        return url
    }

    /// Stops listening and closes all connections; responses in progress have
    /// ``ServerLimits/stopTimeout`` to end.
    public func stop() async { await server.stop() }
}
