import ArgumentParser
import TieredCacheProxy

/// `tieredcache prefetch`: fetches URLs into the cache.
struct PrefetchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prefetch",
        abstract: "Fetch URLs into the cache.",
        discussion: """
            With --bytes only the head is fetched, enough for a player to start at once. Of an HLS \
            playlist or a DASH manifest all that it refers to is fetched as well, for play without \
            the network. Exits \
            with 69 if any URL failed; the others are stored all the same.
            """
    )

    @Argument(help: ArgumentHelp("Absolute http or https URLs.", valueName: "url"))
    var urls: [String]

    @Option(help: ArgumentHelp("How much of each, from its start.", valueName: "size"))
    var bytes: ByteSize?

    @Option(
        help: ArgumentHelp(
            "Which variants of a playlist or manifest: all, highest, lowest, or bits per second.",
            valueName: "choice"
        )
    )
    var variant = VariantArgument(choice: .all)

    @Flag(help: "Print one line of JSON for each URL.")
    var json = false

    @OptionGroup(title: "Origin options")
    var origin: OriginOptions

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        guard bytes.map({ $0.bytes > 0 }) ?? true else {
            throw ValidationError("--bytes must be more than zero")
        }
    }
}
