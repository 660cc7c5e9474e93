import Dispatch
import HTTPCaching
import Logging
import ServiceLifecycle
import TieredCache
import TieredCacheProxy
import UnixSignals

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension ServeCommand {
    func run() async throws {
        try OpenFileLimit.require()
        var configuration = cache.configuration()
        configuration.isShared = shared
        configuration.timeout = min(configuration.timeout, timeout)
        let cache = try TieredCache(configuration)
        if let trouble = cache.storageTrouble {
            StandardError.write("tieredcache: nothing is stored: \(trouble.message)".asOneLine)
        }
        let limit = Interruption.limitingStop()
        defer { for source in limit { source.cancel() } }
        do {
            try await serve(cache, configuration)
            await cache.shutdown()
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    private func serve(_ cache: TieredCache, _ configuration: Configuration) async throws {
        var settings = ProxySettings()
        settings.port = port
        settings.token = token
        settings.hosts = host
        settings.originTimeout = timeout
        settings.logger = configuration.logger
        if let origin {
            let proxy = try await ReverseProxy.start(
                cache: cache,
                origin: origin,
                settings: settings
            )
            return try await run(
                ProxyService { await proxy.stop() },
                base: proxy.base,
                port: proxy.port
            )
        }
        let proxy = try await PlayerProxy.start(
            cache: cache,
            directory: configuration.directory,
            settings: settings
        )
        try await run(ProxyService { await proxy.stop() }, base: proxy.base, port: proxy.port)
    }

    private var timeout: Duration { .milliseconds(Int64(originTimeout * 1000)) }

    /// Tells that the proxy is ready, and runs it until a signal ends it.
    private func run(_ service: ProxyService, base: String, port: Int) async throws {
        var logger = Logger(label: "tieredcache.serve") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
                ],
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: logger
            )
        )
        try StandardOutput.writeLine(
            json ? #"{"base": "\#(base)", "port": \#(port)}"# : "listening on \(base)"
        )
        try await group.run()
    }
}
