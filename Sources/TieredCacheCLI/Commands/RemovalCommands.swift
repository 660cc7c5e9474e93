import ArgumentParser

/// `tieredcache remove`: removes single entries.
struct RemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove entries.",
        discussion: "What is not stored counts as removed."
    )

    @Argument(help: ArgumentHelp("The URLs of the entries.", valueName: "url"))
    var urls: [String]

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache clear`: removes all entries.
struct ClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove every entry, pinned ones too.",
        discussion: "Files in the directory that are not the cache's stay."
    )

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}

/// `tieredcache trim`: evicts entries down to a size.
struct TrimCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trim",
        abstract: "Evict entries, least recently used first, until the rest fits a size.",
        discussion: "Pinned entries stay, even where they alone exceed the size."
    )

    @Option(name: .customLong("to"), help: ArgumentHelp("The size to reach.", valueName: "size"))
    var size: ByteSize

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}
