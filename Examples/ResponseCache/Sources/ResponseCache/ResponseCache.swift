import ArgumentParser
import FoundationEssentials
import Hummingbird
import ServiceLifecycle
import TieredCache

/// A server that answers `/api/...` by calls of an upstream server, until a signal ends it.
@main
struct ResponseCache: AsyncParsableCommand {
    @Argument(help: "Where the calls go, such as http://127.0.0.1:9000.") var upstream: String
    @Argument(help: "Where responses are kept, a directory of its own.") var directory: String
    @Option(help: "A port of 127.0.0.1; 0 for one that is free.") var port = 8080

    func run() async throws {
        var configuration = MediaCache.Configuration(directory: URL(filePath: directory))
        configuration.isShared = true  // Nothing is stored that is for one client alone.
        configuration.maximumDownloads = 100
        configuration.maximumDownloadsPerHost = 100
        configuration.retries = 2
        configuration.timeout = .seconds(10)
        let calls = UpstreamCalls(cache: try MediaCache(configuration), upstream: upstream)
        let router = Router(options: .autoGenerateHeadEndpoints)
        router.get("api/**") { try await calls.answer($0, context: $1) }
        let server = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname(port: port))
        )
        var services = ServiceGroupConfiguration(
            services: [server],
            gracefulShutdownSignals: [.sigint, .sigterm],
            logger: server.logger
        )
        // Clients whose calls take longer are cut off.
        services.maximumGracefulShutdownDuration = .seconds(3)
        try await ServiceGroup(configuration: services).run()
        await calls.cache.shutdown()
    }
}
