import ArgumentParser

/// `tieredcache list`: every entry.
struct ListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what the disk tier holds."
    )

    @Flag(help: "Print one JSON object for each entry, one per line.")
    var json = false

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
        abstract: "Show one entry with its header fields.",
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
