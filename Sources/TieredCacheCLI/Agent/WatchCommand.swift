import ArgumentParser
import TieredCache
import TieredCacheAgent

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `tieredcache watch`: a live table of the agent's downloads.
struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Show the downloads of the agent as they go on, until Ctrl-C.",
        discussion: """
            On a terminal a table that is drawn anew twice a second; elsewhere, and with --json, a line for \
            each download whenever it has changed.
            """
    )

    @Flag(help: "Print one line of JSON for each change.")
    var json = false

    @Option(help: ArgumentHelp("The socket of the agent.", valueName: "path"))
    var socket: String?

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func run() async throws {
        let place = try AgentPlace(options: cache, socket: socket)
        let draws = !json && isatty(1) == 1
        let (printsJSON, agent) = (json, try await place.found())
        do {
            try await Interruption.guarding {
                if draws {
                    try await Self.draw(agent)
                } else {
                    try await Self.tell(agent, asJSON: printsJSON)
                }
            }
        } catch let failure as CommandFailure where failure.status == .interrupted {
            return  // As people end it.
        }
    }

    private static let pause = Duration.milliseconds(500)
    /// What a table has room for on a usual terminal.
    private static let rows = 40

    private static func draw(_ agent: AgentClient) async throws {
        while true {
            let downloads = try AgentDownload.all(of: agent)
            // From the upper left corner, each line to its end, then to the end of the screen.
            var text = "\u{1B}[H"
            for download in downloads.prefix(rows) { text += download.line + "\u{1B}[K\r\n" }
            let more = downloads.count - rows
            text += more > 0 ? "and \(more) more\u{1B}[K\r\n\u{1B}[J" : "\u{1B}[J"
            try StandardOutput.writeLine(text)
            try await Task.sleep(for: pause)
        }
    }

    private static func tell(_ agent: AgentClient, asJSON: Bool) async throws {
        var known: [String: AgentDownload] = [:]
        while true {
            for download in try AgentDownload.all(of: agent) where known[download.gid] != download {
                known[download.gid] = download
                try StandardOutput.writeLine(asJSON ? JSONLine.text(of: download) : download.line)
            }
            try await Task.sleep(for: pause)
        }
    }
}
