import Logging
import NIOCore
import TieredCache

/// Which port a proxy gets.
enum LoopbackPort {
    /// Listens on the port asked for; else on the preferred one if it is free, else on any.
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
            return try await start(port, responder, settings)
        }
        if let preferred {
            do throws(CacheError) {
                return try await start(preferred, responder, settings)
            } catch {
                settings.logger.warning(
                    "the port used before is taken",
                    metadata: ["port": "\(preferred)"]
                )
            }
        }
        return try await start(0, responder, settings)
    }

    private static func start(
        _ port: Int,
        _ responder: any Responder,
        _ settings: ProxySettings
    ) async throws(CacheError) -> HTTPServer {
        do {
            return try await HTTPServer.start(
                port: port,
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
