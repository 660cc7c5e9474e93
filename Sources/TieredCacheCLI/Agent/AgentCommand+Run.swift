import Dispatch
import FoundationEssentials
import Logging
import ServiceLifecycle
import SystemPackage
import TieredCache
import TieredCacheAgent
import TieredCacheProxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension AgentCommand {
    func run() async throws {
        do {
            // Not to keep a volume from being unmounted.
            if background { _ = chdir("/") }
            try await serve()
        } catch {
            if background {
                // The command that has started this one waits for a line.
                let ending = Ending(error)
                let report = BackgroundReport(
                    message: ending.output,
                    status: ending.status.rawValue
                )
                try StandardOutput.writeLine(JSONLine.text(of: report))
            }
            throw error
        }
    }

    private func serve() async throws {
        let activation: Activation
        do {
            activation = try Activation.take()
        } catch {
            throw CommandFailure(
                .localFailed,
                message: "cannot use the sockets that systemd gives: \(error)"
            )
        }
        try OpenFileLimit.require()
        let (configuration, proxy) = configurations()
        var settings = AgentService.Settings(
            socket: try AgentPlace(options: cache, socket: socket).socket
        )
        settings.port = rpcPort
        settings.secret = rpcSecret ?? variable("TIEREDCACHE_RPC_SECRET")
        settings.proxyPort = proxyPort
        settings.activation = activation
        settings.idle = idle.duration
        settings.proxy = proxy
        settings.options = DownloadOptions(["dir": Self.downloadDirectory])
        let signals = try StopSignals()
        defer { signals.end() }
        let service = try await AgentService.start(configuration, settings: settings)
        try await run(service, activation, signals)
    }

    private func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Where files go of which nothing else is said.
    private static var downloadDirectory: String {
        guard let home = getenv("HOME").map({ FilePath(platformString: $0) }), home.isAbsolute
        else { return "/tmp" }
        let downloads = home.appending("Downloads")
        return access(downloads.string, W_OK) == 0 ? downloads.string : home.string
    }

    private func configurations() -> (MediaCache.Configuration, ProxySettings) {
        var configuration = cache.configuration()
        var settings = ProxySettings()
        configuration.via = "1.1 \(settings.pseudonym.name)"
        let budget = DescriptorBudget(downloads: 16)
        budget?.apply()
        configuration.maximumIdleFiles = budget?.maximumIdleFiles
        // More than those that run at once by default: what plays has a place beside them.
        configuration.maximumDownloads = budget?.maximumDownloads ?? 16
        configuration.maximumDownloadsPerHost = configuration.maximumDownloads
        settings.maximumConnections = budget?.maximumConnections
        settings.logger = configuration.logger
        return (configuration, settings)
    }

    private func run(
        _ service: AgentService,
        _ activation: Activation,
        _ signals: StopSignals
    ) async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(
                        service: RunningAgent(service: service, activation: activation),
                        successTerminationBehavior: .gracefullyShutdownGroup
                    )
                ],
                logger: Logger(label: "tieredcache.agent") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        do {
            try StandardOutput.writeLine(try readyLine(service.address))
        } catch  where background {
            // The command has ended meanwhile; the next one finds the agent.
        }
        activation.report("READY=1")
        if background { DetachedProgram.leaveStarter() }
        try await signals.run(group)
    }

    private func readyLine(_ address: AgentService.Address) throws -> String {
        if background { return try JSONLine.text(of: BackgroundReport()) }
        let report = AgentReport(address)
        guard !json else { return try JSONLine.text(of: report) }
        let places = [report.socket, report.rpc, report.base].compactMap { $0 }
        return "listening on \(places.joined(separator: " and "))"
    }
}

/// The line of `agent --json`.
struct AgentReport: Encodable, Equatable {
    let socket: String
    @Nullable var rpc: String?
    /// What proxied URLs begin with; not there without a proxy.
    let base: String?

    init(_ address: AgentService.Address) {
        socket = address.socket.string
        rpc = address.rpc
        base = address.base?.absoluteString
    }
}

/// An agent as a service.
private struct RunningAgent: Service {
    let service: AgentService
    let activation: Activation

    func run() async throws {
        await cancelWhenGracefulShutdown { await service.untilDone() }
        activation.report("STOPPING=1")
        await service.stop()
    }
}
