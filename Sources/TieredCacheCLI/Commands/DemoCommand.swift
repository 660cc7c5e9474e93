import ArgumentParser

/// `tieredcache demo`: runs the whole engine against an embedded origin.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show the engine at work against an embedded origin, and check every claim.",
        discussion: "Needs no network. Exits with 70 if a claim fails."
    )

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions
}
