import ArgumentParser
import Logging

/// The options of all commands.
struct CacheOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the disk tier lives.",
            discussion:
                "By default tieredcache under $XDG_CACHE_HOME or ~/.cache, and tieredcache-reverse "
                + "for 'serve --origin'.",
            valueName: "dir"
        )
    )
    var directory: String?

    @Option(help: ArgumentHelp("The most bytes kept in memory, such as 64MiB.", valueName: "size"))
    var memoryLimit: ByteSize?

    @Option(help: ArgumentHelp("The most bytes kept on disk, such as 2GiB.", valueName: "size"))
    var diskLimit: ByteSize?

    @Option(
        help: ArgumentHelp(
            "Stop storing when the volume has less free than this.",
            discussion: "By default the smaller of 256MiB and 5 % of the volume.",
            valueName: "size"
        )
    )
    var minFree: ByteSize?

    @Option(
        help: ArgumentHelp(
            "What goes to the log on standard error.",
            valueName: "level"
        )
    )
    var logLevel = LogLevel(.error)

    /// Refuses limits of zero.
    func validate() throws {
        for (name, size) in [("--memory-limit", memoryLimit), ("--disk-limit", diskLimit)] {
            guard let size, size.bytes <= 0 else { continue }
            throw ValidationError("\(name) must be more than zero")
        }
    }
}

/// The argument of `--log-level`: a level of swift-log.
struct LogLevel: ExpressibleByArgument, Equatable {
    let level: Logger.Level

    init(_ level: Logger.Level) {
        self.level = level
    }

    init?(argument: String) {
        guard let level = Logger.Level(rawValue: argument.lowercased()) else { return nil }
        self.level = level
    }

    var defaultValueDescription: String { level.rawValue }

    static var allValueStrings: [String] { Logger.Level.allCases.map(\.rawValue) }
}

/// The options of commands that may send requests to the origin.
struct OriginOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Attempts without progress before giving up.", valueName: "n"))
    var retries = 5

    @Option(help: ArgumentHelp("Seconds without a byte before giving up.", valueName: "seconds"))
    var timeout = 30.0

    func validate() throws {
        guard retries > 0 else { throw ValidationError("--retries must be at least 1") }
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout must be more than 0 and at most 86400 seconds")
        }
    }
}
