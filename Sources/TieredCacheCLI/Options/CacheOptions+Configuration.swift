import Logging
import SystemPackage
import TieredCache

extension CacheOptions {
    /// The configuration for these options; missing options keep their defaults.
    ///
    /// - Parameter origin: the options of commands that may send requests to the origin.
    /// - Returns: the configuration, not yet validated.
    func configuration(origin: OriginOptions? = nil) -> MediaCache.Configuration {
        var configuration = MediaCache.Configuration()
        if let directory { configuration.path = FilePath(directory) }
        if let memoryLimit { configuration.memoryLimit = memoryLimit.bytes }
        if let diskLimit { configuration.diskLimit = diskLimit.bytes }
        if let minFree { configuration.minimumFreeDisk = minFree.bytes }
        if let origin {
            configuration.retries = origin.retries
            configuration.timeout = .milliseconds(Int64(origin.timeout * 1000))
        }
        configuration.logger = logger
        return configuration
    }

    /// The sizes as arguments of another process of this program.
    var sizeArguments: [String] {
        let sizes = [
            ("--memory-limit", memoryLimit), ("--disk-limit", diskLimit), ("--min-free", minFree),
        ]
        return sizes.flatMap { name, size in size.map { [name, "\($0.bytes)"] } ?? [] }
    }

    /// The logger, which writes to standard error: standard output is for bodies and JSON.
    var logger: Logger {
        var logger = Logger(label: "tieredcache") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = logLevel.level
        return logger
    }
}
