import Logging
import NIOCore
import TieredCache

/// Selects the port of a proxy and listens on it.
enum LoopbackPort {
    /// Listens on the requested port; without one on the preferred port if it is free, else on any.
    ///
    /// - Throws: `.localStorage`, naming the port.
    static func listen(
        on port: Int?,
        preferring preferred: Int?,
        responder: any Responder,
        settings: ProxySettings
    ) async throws(CacheError) -> HTTPServer {
        if let port {
            guard (0...65_535).contains(port) else {
                throw CacheError(.invalidArgument, "there is no port \(port)")
            }
            return try await start(on: port, responder: responder, settings: settings)
        }
        if let preferred {
            do throws(CacheError) {
                return try await start(on: preferred, responder: responder, settings: settings)
            } catch {
                settings.logger.warning(
                    "the port used before is taken",
                    metadata: ["port": "\(preferred)"]
                )
            }
        }
        return try await start(on: 0, responder: responder, settings: settings)
    }

    private static func start(
        on port: Int,
        responder: any Responder,
        settings: ProxySettings
    ) async throws(CacheError) -> HTTPServer {
        do {
            return try await HTTPServer.start(
                at: .port(port),
                responder: responder,
                limits: settings.limits,
                maximumConnections: settings.maximumConnections,
                logger: settings.logger
            )
        } catch {
            throw CacheError(
                .localStorage,
                "cannot listen on 127.0.0.1:\(port): \(reason(error)); choose another port"
            )
        }
    }

    private static func reason(_ error: any Error) -> String {
        (error as? IOError).map { String(describing: $0) } ?? "\(error)"
    }
}
