import Dispatch
import FoundationEssentials
import HTTPCaching
import Logging
import ServiceLifecycle
import SystemPackage
import TieredCache
import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension ServeCommand {
    func run() async throws {
        try OpenFileLimit.require()
        var configuration = cache.configuration()
        if origin != nil, cache.directory == nil {
            // What is stored for its clients is not for the applications of the user, nor the
            // other way round, and neither evicts the other's.
            configuration.path = configuration.path.map { FilePath("\($0)-reverse") }
        }
        configuration.isShared = shared
        configuration.followsRedirectsInside = redirectsInside
        var settings = ProxySettings()
        if origin == nil { configuration.via = "1.1 \(settings.pseudonym.name)" }
        let budget = DescriptorBudget(downloads: wantedDownloads)
        budget?.apply()
        configuration.maximumIdleFiles = budget?.maximumIdleFiles
        limitDownloads(of: &configuration, to: budget?.maximumDownloads ?? wantedDownloads)
        configuration.timeout = min(configuration.timeout, timeout)
        let cache = try MediaCache(configuration)
        if let problem = cache.storingError(in: configuration.path) {
            StandardError.write("tieredcache: nothing is stored: \(problem.message)".asOneLine)
        }
        let signals = try StopSignals()
        defer { signals.end() }
        do {
            settings.maximumConnections = budget?.maximumConnections
            let guests = GuestService(
                cache: cache,
                directory: configuration.directory,
                settings: settings
            )
            try await serve(
                cache,
                configuration: configuration,
                defaults: settings,
                signals: signals
            )
            await guests.stop()
            await cache.shutdown()
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    /// A player proxy serves a few films at a time, a reverse proxy hundreds of clients.
    private var wantedDownloads: Int { maximumDownloads ?? (origin == nil ? 6 : 256) }

    /// Sets the limits of downloads and uploads.
    ///
    /// A reverse proxy has one origin, which gets all downloads. A player proxy has many, none of
    /// which may occupy the last download.
    private func limitDownloads(of configuration: inout MediaCache.Configuration, to count: Int) {
        configuration.maximumDownloads = count
        configuration.maximumDownloadsPerHost = origin == nil ? max(1, count - 1) : count
        configuration.maximumUploads = max(1, count / 2)
    }

    private func serve(
        _ cache: MediaCache,
        configuration: MediaCache.Configuration,
        defaults: ProxySettings,
        signals: StopSignals
    ) async throws {
        // The runtime opens its clocks at their first use, and works without them if that fails:
        // open them while descriptors are free.
        try await Task.sleep(for: .nanoseconds(1), clock: .continuous)
        try await Task.sleep(for: .nanoseconds(1), clock: .suspending)
        var settings = defaults
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
                base: proxy.base.absoluteString,
                port: proxy.port,
                signals: signals
            )
        }
        let proxy = try await PlayerProxy.start(
            cache: cache,
            directory: configuration.directory,
            settings: settings
        )
        let file = servingFile(of: proxy, cache, configuration: configuration)
        defer { file?.withdraw() }
        try await run(
            ProxyService { await proxy.stop() },
            base: proxy.base.absoluteString,
            port: proxy.port,
            signals: signals
        )
    }

    /// Lets `url` and `exec` find the proxy; that of a guest is not for them, as it depends on the
    /// owner.
    private func servingFile(
        of proxy: PlayerProxy,
        _ cache: MediaCache,
        configuration: MediaCache.Configuration
    ) -> ServingFile? {
        guard let directory = configuration.path, cache.storageError == nil else { return nil }
        do {
            return try ServingFile(of: proxy, in: directory)
        } catch {
            configuration.logger.warning(
                "other programs cannot find this proxy",
                metadata: ["error": "\(error)"]
            )
            return nil
        }
    }

    private var timeout: Duration { .milliseconds(Int64(originTimeout * 1000)) }

    /// Reports that the proxy is ready, and runs it until a signal stops it.
    private func run(
        _ service: ProxyService,
        base: String,
        port: Int,
        signals: StopSignals
    ) async throws {
        var logger = Logger(label: "tieredcache.serve") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
                ],
                logger: logger
            )
        )
        try StandardOutput.writeLine(
            json ? #"{"base": "\#(base)", "port": \#(port)}"# : "listening on \(base)"
        )
        try await signals.run(group)
    }
}
