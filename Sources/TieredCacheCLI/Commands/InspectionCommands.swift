import ArgumentParser

/// `tieredcache list`: every entry.
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

/// `tieredcache stats`: sums.
struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how many entries there are and what they take.",
        discussion: "Bytes are what the disk allocates for files, not their nominal lengths."
    )

    @Flag(help: "Print one line of JSON.")
    var json = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache show`: one entry.
struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Explain one entry, and show its header fields.",
        discussion: "Exits with 66 if it is not held."
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

/// `tieredcache path`: a file for a player.
struct PathCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "path",
        abstract: "Print the path of a file that equals the complete body.",
        discussion: "Exits with 66 if the body is not held in full."
    )

    @Argument(help: "The URL of the entry.")
    var url: String

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache verify`: every checksum.
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
