import ArgumentParser
import HTTPCaching
import SystemPackage
import TieredCache
import TieredCacheAgent

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tieredcache add`: gives downloads to the agent.
struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Download files in the background, through the agent of the cache directory.",
        discussion: """
            Prints the identifier of each and returns; the agent goes on, and is started if need be. The file \
            appears in the directory when it is complete. See 'downloads', 'watch', 'pause', 'resume', 'cancel'.

              tieredcache add https://example.com/film.mp4
              tieredcache add --out film.mp4 https://example.com/a --mirror https://example.org/b
            """
    )

    @Argument(help: ArgumentHelp("What to download, a file each.", valueName: "url"))
    var urls: [String]

    @Option(help: ArgumentHelp("The name of the file.", valueName: "name"))
    var out: String?

    @Option(help: ArgumentHelp("Where the file goes; by default here.", valueName: "dir"))
    var dir: String?

    @Option(
        help: ArgumentHelp(
            "Another URL of the same file, used where the first fails.",
            discussion: "Can be given several times.",
            valueName: "url"
        )
    )
    var mirror: [String] = []

    @Option(
        help: ArgumentHelp(
            "A field of the request, 'Name: value'.",
            discussion: "Can be given several times. Secret ones are never written to disk.",
            valueName: "field"
        )
    )
    var header: [String] = []

    @Option(help: ArgumentHelp("sha-256=HEX or md5=HEX of the file.", valueName: "digest"))
    var checksum: String?

    @Option(help: ArgumentHelp("The most bytes a second, such as 500K.", valueName: "rate"))
    var limit: String?

    @Option(
        help: ArgumentHelp(
            "The session of an application that they belong to.",
            discussion: "1 to 128 letters, digits, and -._",
            valueName: "name"
        )
    )
    var session: String?

    @Option(
        help: ArgumentHelp(
            "What is run when all of the session have ended and its application is not there.",
            discussion:
                "A command of /bin/sh, with TIEREDCACHE_SESSION and TIEREDCACHE_SOCKET set.",
            valueName: "command"
        )
    )
    var onComplete: String?

    @Option(
        help: ArgumentHelp(
            "What the machine has to be like for them to run.",
            discussion: "A list with commas: network, unmetered, charging, idle, storage.",
            valueName: "conditions"
        )
    )
    var require: String?

    @Flag(help: "Do not start it yet.")
    var paused = false

    @Flag(help: "Print one line of JSON for each.")
    var json = false

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        guard urls.count == 1 || (out == nil && mirror.isEmpty && checksum == nil) else {
            throw ValidationError("--out, --mirror and --checksum are for one URL")
        }
        if let session, !SessionForm.isName(session) {
            throw ValidationError("--session takes 1 to 128 letters, digits, and -._")
        }
        if let require, Condition.list(require) == nil {
            throw ValidationError(
                "--require takes a list of network, unmetered, charging, idle, storage"
            )
        }
        guard onComplete == nil || session != nil else {
            throw ValidationError("--on-complete is for a --session")
        }
    }

    func run() async throws {
        for url in urls + mirror { _ = try CacheRequest(url) }
        let agent = try await AgentPlace(options: cache, socket: socket).found()
        let options = try options()
        if let session, let onComplete {
            let words: [JSONValue] = ["/bin/sh", "-c", .string(onComplete)]
            _ = try agent.ask(
                "tieredcache.attach",
                [.string(session), ["on-complete": .array(words)]]
            )
        }
        for url in urls {
            let uris = ([url] + mirror).map { JSONValue.string($0) }
            let gid = try agent.ask("aria2.addUri", [.array(uris), .object(options)])
            let text = gid.string ?? ""
            let shown = try CacheRequest(url).target.string
            try StandardOutput.writeLine(
                json ? JSONLine.text(of: AddReport(gid: text, url: shown)) : "\(text)  \(shown)"
            )
        }
    }

    private func options() throws(CommandFailure) -> [String: JSONValue] {
        var options: [String: JSONValue] = ["dir": .string(try directory())]
        options["out"] = out.map { .string($0) }
        options["checksum"] = checksum.map { .string($0) }
        options["max-download-limit"] = limit.map { .string($0) }
        if !header.isEmpty { options["header"] = .array(header.map { .string($0) }) }
        options["session"] = session.map { .string($0) }
        options["require"] = require.map { .string($0) }
        if paused { options["pause"] = "true" }
        return options
    }

    /// The agent works elsewhere.
    private func directory() throws(CommandFailure) -> String {
        let path = FilePath(dir ?? ".")
        guard !path.isAbsolute else { return path.string }
        guard let here = realpath(".", nil) else {
            throw CommandFailure(
                .localFailed,
                message: "the working directory is gone: \(Errno(rawValue: errno)); give --dir"
            )
        }
        defer { free(here) }
        return FilePath(platformString: here).pushing(path).lexicallyNormalized().string
    }
}

/// A line of `add --json`.
struct AddReport: Encodable, Equatable {
    let gid: String
    let url: String
}
