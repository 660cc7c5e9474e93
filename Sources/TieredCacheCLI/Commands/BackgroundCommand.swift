import ArgumentParser
import Dispatch
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

/// `tieredcache background`: the proxy that `url` starts; not for people.
struct BackgroundCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "background",
        abstract: "The proxy that 'url' starts.",
        shouldDisplay: false
    )

    @Option
    var idle: TimeSpan

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    /// The arguments that start it.
    static func arguments(
        for options: CacheOptions,
        _ directory: FilePath,
        idle: TimeSpan
    ) -> [String] {
        ["background", "--directory", directory.string]
            + ["--idle", "\(idle.duration.components.seconds)"] + options.sizeArguments
    }

    func run() async throws {
        do {
            // Not to keep a volume from being unmounted.
            guard chdir("/") == 0 else { throw Errno(rawValue: errno) }
            let signals = try StopSignals()
            defer { signals.end() }
            let served = try await ServedCache.start(cache, keepsAddress: true)
            do {
                try await serve(served, until: signals)
                await served.stop()
            } catch {
                await served.stop()
                throw error
            }
        } catch {
            // The process that has started this one may still wait for a line.
            let ending = Ending(error)
            let report = BackgroundReport(message: ending.output, status: ending.status.rawValue)
            try StandardOutput.writeLine(JSONLine.text(of: report))
            throw error
        }
    }

    private func serve(_ served: ServedCache, until signals: StopSignals) async throws {
        let file = try servingFile(of: served.proxy)
        defer { file.withdraw() }
        let problem = served.cache.storageError.flatMap { $0.code == .notOwner ? nil : $0 }
        let report = BackgroundReport(message: problem.map { "nothing is stored: \($0.message)" })
        let (proxy, idle) = (served.proxy, idle.duration)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(
                        service: ProxyService { await proxy.stop() },
                        successTerminationBehavior: .gracefullyShutdownGroup
                    ),
                    .init(
                        service: IdleService(proxy: proxy, file: file, idle: idle),
                        successTerminationBehavior: .gracefullyShutdownGroup
                    ),
                ],
                logger: Logger(label: "tieredcache.background") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        do {
            try StandardOutput.writeLine(JSONLine.text(of: report))
        } catch {
            // The command has ended meanwhile; the next one finds the proxy.
        }
        DetachedProgram.leaveStarter()
        try await signals.run(group)
    }

    private func servingFile(of proxy: PlayerProxy) throws -> ServingFile {
        let directory = cache.configuration().path ?? "."
        do {
            return try ServingFile(of: proxy, in: directory)
        } catch {
            throw CommandFailure(
                .localFailed,
                message: "cannot write SERVING in the cache directory \(directory): \(error); "
                    + "choose another directory, or run 'tieredcache serve'"
            )
        }
    }
}

/// Ends when no client has been connected for some time, and no program plays.
private struct IdleService: Service {
    let proxy: PlayerProxy
    let file: ServingFile
    let idle: Duration

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown {
                repeat {
                    try await proxy.untilUnused(for: idle)
                } while !file.withdraw(unlessUsed: true)
            }
        } catch is CancellationError {
            // A signal ends the proxy.
        }
    }
}
