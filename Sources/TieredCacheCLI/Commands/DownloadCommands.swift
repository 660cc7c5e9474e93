import ArgumentParser

/// `tieredcache downloads`: lists the unfinished jobs.
struct DownloadsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloads",
        abstract: "List the downloads that have not finished.",
        discussion: """
            What 'get', 'prefetch' or 'resume' was fetching when it was interrupted, what was \
            paused or cancelled, and what gave up. Nothing is fetched. Where an agent has \
            downloads ('add'), they come first, those that have ended among them.
            """
    )

    @Flag(help: "Print one JSON object for each download, one per line.")
    var json = false

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache resume`: continues unfinished jobs.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Go on with unfinished downloads.",
        discussion: """
            Without a URL all of them go on, except those that were cancelled or failed for good. \
            Exits with 69 if any failed, with 66 where a URL has no unfinished download.

              tieredcache resume
              tieredcache resume https://example.com/film.mp4
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Which: URLs, or identifiers of 'add'; all without it.",
            valueName: "url"
        )
    )
    var urls: [String] = []

    @Flag(help: "Print one line of JSON for each download at its end.")
    var json = false

    @Flag(name: .shortAndLong, help: "No progress bar.")
    var quiet = false

    @OptionGroup(title: "Origin options")
    var origin: OriginOptions

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache pause`: pauses unfinished jobs.
struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Keep unfinished downloads from going on until they are resumed.",
        discussion: "Exits with 75 where another process runs them, with 66 where there is none."
    )

    @Argument(help: ArgumentHelp("Their URLs, or identifiers of 'add'.", valueName: "url"))
    var urls: [String]

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache cancel`: cancels unfinished jobs.
struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Give up unfinished downloads; what arrived stays in the cache.",
        discussion: "Exits with 75 where another process runs them, with 66 where there is none."
    )

    @Argument(help: ArgumentHelp("Their URLs, or identifiers of 'add'.", valueName: "url"))
    var urls: [String]

    @Flag(help: "Remove what arrived as well; what an agent had is evicted in time.")
    var drop = false

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}
