import ArgumentParser

/// `tieredcache demo`: the whole engine against an origin of its own.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show the engine at work against an embedded origin, and check every claim.",
        discussion: "Needs no network. Exits with a code other than 0 where a claim fails."
    )

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}
