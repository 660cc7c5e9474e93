import ArgumentParser

/// `tieredcache get`: writes the bytes of one URL.
struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write the bytes of a URL to standard output or a file.",
        discussion: """
            What is stored is read from memory or disk, the rest is fetched and kept. A download \
            that was interrupted goes on where it stopped.

              tieredcache get https://example.com/film.mp4 --output film.mp4
              tieredcache get https://example.com/film.mp4 --range 0-1023 --output -
              tieredcache get https://example.com/list.m3u8 --policy cache-only --json
            """
    )

    @Argument(help: "An absolute http or https URL.")
    var url: String

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Where the body goes; - is standard output.",
            discussion: "The file appears only when it is complete.",
            valueName: "file|-"
        )
    )
    var output = "-"

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The bytes wanted: A-B, A- or -N (the last N).",
            valueName: "a-b"
        )
    )
    var range: RangeArgument?

    @Option(help: "What may answer, the cache or the origin.")
    var policy = PolicyArgument.default

    @Option(
        help: ArgumentHelp("The method, by default GET, or POST with --data.", valueName: "m")
    )
    var method: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The body of the request; implies POST.", valueName: "text")
    )
    var data: String?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field of the request; may be repeated.", valueName: "name: value")
    )
    var header: [HeaderArgument] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Names the entry instead of the URL.",
            discussion: "For signatures that rotate, and for POST, where the key holds the body.",
            valueName: "key"
        )
    )
    var key: String?

    @Flag(help: "Never evict this entry.")
    var pin = false

    @Flag(help: "End with one line of JSON; on standard error if the body goes to standard output.")
    var json = false

    @Flag(name: .shortAndLong, help: "No progress bar.")
    var quiet = false

    @OptionGroup(title: "Origin options")
    var origin: OriginOptions

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    /// The method to send.
    var effectiveMethod: String { method ?? (data == nil ? "GET" : "POST") }

    /// Whether the body is written to standard output, and other output to standard error.
    var writesToStandardOutput: Bool { output == "-" }

    func validate() throws {
        guard effectiveMethod.isToken else {
            throw ValidationError("'\(effectiveMethod)' is not a method")
        }
        // CONNECT asks for a tunnel, not for a body.
        guard effectiveMethod != "CONNECT" else { throw ValidationError("CONNECT has no body") }
        guard !output.isEmpty else { throw ValidationError("--output must name a file or be -") }
        // In a script it is probably an unset variable, and all URLs would share one entry.
        guard key != "" else { throw ValidationError("--key must not be empty") }
        if let objection = header.compactMap(\.objection).first { throw ValidationError(objection) }
    }
}

extension String {
    /// Whether the text is a token (RFC 9110 §5.6.2), as a method must be.
    var isToken: Bool {
        let marks = Set("!#$%&'*+-.^_`|~".unicodeScalars)
        return !isEmpty
            && unicodeScalars.allSatisfy { scalar in
                scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
                    || marks.contains(scalar)
            }
    }
}
