import ArgumentParser

/// `tieredcache list`: lists all entries.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what the disk tier holds."
    )

    @Flag(help: "Print one JSON object for each entry, one per line.")
    var json = false

    @Option(help: "Sort by url, length, held (bytes) or used (least recently first).")
    var sort = EntrySelection.Order.url

    @Flag(help: "Sort the other way round.")
    var reverse = false

    @Option(
        name: .customLong("filter"),
        help: "Show only complete, partial, pinned or prefetched entries; several must all hold."
    )
    var filters: [EntrySelection.Filter] = []

    @Option(help: ArgumentHelp("Show only entries whose URL has this in it.", valueName: "text"))
    var contains: String?

    var selection: EntrySelection {
        EntrySelection(order: sort, isReversed: reverse, filters: filters, text: contains)
    }

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache stats`: shows usage and statistics.
struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how many entries there are, what they take, and what has happened.",
        discussion: """
            Bytes are what the disk allocates for files, not their nominal lengths. Hit ratios, \
            reasons of misses and of leaving are sums over all processes that owned the directory, \
            which write them down every ten seconds and at their end.
            """
    )

    @Flag(help: "Print one line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache events`: shows recorded events.
struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract:
            "Explain misses and evictions: what happened in the cache directory, oldest first.",
        discussion: """
            Misses, what was stored, refused, evicted, replaced, expired, removed or found \
            corrupted, each with its reason; hits are only counted, see 'stats'. The log goes back \
            as far as 2 MiB, or a 256th of the disk limit, reach. URLs are shown without userinfo \
            and query.
            """
    )

    @Argument(help: "Show only the events of this URL, query included.")
    var url: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The key it was stored under, if not the URL.", valueName: "key")
    )
    var key: String?

    @Option(help: ArgumentHelp("Only the last 90s, 15m, 2h or 3d.", valueName: "time"))
    var since: TimeSpan?

    @Flag(help: "Print one JSON object for each event, one per line.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        guard key == nil || url != nil else { throw ValidationError("--key needs a URL") }
    }
}

/// `tieredcache show`: explains one entry.
struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Explain one entry, and show its header fields.",
        discussion: "Exits with 66 if it is not stored."
    )

    @Argument(help: "The URL of the entry.")
    var url: String

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The key it was stored under, if not the URL.", valueName: "key")
    )
    var key: String?

    @Flag(help: "Print one line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache path`: prints the path of a complete body.
struct PathCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path",
        abstract: "Print the path of a file that equals the complete body.",
        discussion: "Exits with 66 if the body is not stored in full."
    )

    @Argument(help: "The URL of the entry.")
    var url: String

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache verify`: checks all checksums.
struct VerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read every block and compare it with its checksum.",
        discussion: "Exits with 74 if damage was found and not repaired."
    )

    @Flag(help: "Drop damaged blocks, so that they are fetched again.")
    var repair = false

    @Flag(help: "Print one line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}
