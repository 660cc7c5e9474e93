import ArgumentParser
import TieredCache
import TieredCacheProxy

/// `tieredcache url`: prints proxied URLs, and starts a proxy in the background if none runs.
struct URLCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url",
        abstract: "Print the URL that plays another one through the cache.",
        discussion: """
            ffplay "$(tieredcache url https://example.com/film.mp4)"

            Starts a proxy in the background if none runs for the directory. It ends by itself when \
            no client has been connected for some time; its process is named in the file SERVING \
            there, and SIGTERM ends it. The URL contains the token of the directory: keep it secret.
            """
    )

    @Argument(help: ArgumentHelp("What to play.", valueName: "url"))
    var urls: [String]

    @Option(
        help: ArgumentHelp(
            "How long a proxy that is started waits for a client, such as 90s, 15m or 2h.",
            discussion: "By default 10m. One that runs keeps its own.",
            valueName: "time"
        )
    )
    var idle: TimeSpan?

    @Flag(help: "Print each as a line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        guard idle.map({ $0.duration > .zero }) ?? true else {
            throw ValidationError("--idle must be more than zero")
        }
    }

    func run() async throws {
        for url in urls { _ = try ProxiedURL.target(of: url) }
        let proxy = try await BackgroundProxy.find(
            orStart: cache,
            idle: idle ?? BackgroundProxy.idle
        )
        for url in urls {
            let proxied = try ProxiedURL.text(of: url, by: proxy.url)
            try StandardOutput.writeLine(
                json ? try JSONLine.text(of: Report(url: url, proxied: proxied)) : proxied
            )
        }
    }

    private struct Report: Encodable {
        var url: String
        var proxied: String
    }
}
