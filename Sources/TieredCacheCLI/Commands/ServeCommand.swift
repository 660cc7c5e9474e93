import ArgumentParser

/// `tieredcache serve`: runs a proxy for players, or in front of an origin.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve the cache on 127.0.0.1, to players or in front of an origin.",
        discussion: """
            Prints its address when it is ready. A player opens that address, the scheme and the \
            rest of a URL, such as http://127.0.0.1:PORT/TOKEN/https/example.com/film.mp4. Port \
            and token stay the same for a cache directory.

            With --origin it is a reverse proxy instead: http://127.0.0.1:PORT/x is URL/x, and no \
            token is needed. It then answers any program that can connect to the port on this machine, but \
            not by names that a page on the web could have point here; see --host. SIGINT and \
            SIGTERM end it.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where to listen on 127.0.0.1.",
            discussion: "By default the port used before, or a free one.",
            valueName: "n"
        )
    )
    var port: Int?

    @Option(help: ArgumentHelp("Be a reverse proxy of this URL.", valueName: "url"))
    var origin: String?

    @Flag(help: "Follow the rules of a shared cache; with --origin.")
    var shared = false

    @Option(
        help: ArgumentHelp(
            "A further name that clients may ask by, with --origin; '*' for any.",
            discussion: "Names of loopback and of the origin, and addresses, are always allowed.",
            valueName: "name"
        )
    )
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            "What proxied URLs begin with.",
            discussion:
                "16 to 256 letters, digits or -._~; by default the one used before, or a random one.",
            valueName: "t"
        )
    )
    var token: String?

    @Option(
        help: ArgumentHelp("Seconds that the origin has for a first byte.", valueName: "seconds")
    )
    var originTimeout = 30.0

    @Flag(
        help: ArgumentHelp(
            "Follow redirects from elsewhere to this machine or the local link.",
            discussion: "Origins can then read what listens there."
        )
    )
    var redirectsInside = false

    @Option(
        help: ArgumentHelp(
            "Downloads at most at once; uploads have half as many of their own.",
            discussion:
                "By default 6, and 256 with --origin. Fewer where too few files may be open.",
            valueName: "n"
        )
    )
    var maximumDownloads: Int?

    @Flag(help: "Print the address as one line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        guard port.map({ (0...65_535).contains($0) }) ?? true else {
            throw ValidationError("--port must be from 0 to 65535")
        }
        guard originTimeout > 0, originTimeout <= 86_400 else {
            throw ValidationError("--origin-timeout must be more than 0 and at most 86400 seconds")
        }
        guard maximumDownloads.map({ (1...4096).contains($0) }) ?? true else {
            throw ValidationError("--maximum-downloads must be from 1 to 4096")
        }
        guard origin == nil || token == nil else {
            throw ValidationError("--token has no meaning with --origin")
        }
        guard origin == nil || !redirectsInside else {
            throw ValidationError("--redirects-inside has no meaning with --origin")
        }
        guard origin != nil || host.isEmpty else {
            throw ValidationError("--host has no meaning without --origin")
        }
    }
}
