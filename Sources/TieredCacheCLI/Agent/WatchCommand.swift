import ArgumentParser
import CLinuxCalls
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
        let printsJSON = json
        do {
            try await Interruption.guarding {
                if draws {
                    try await Self.draw(place)
                } else {
                    try await Self.tell(place, asJSON: printsJSON)
                }
            }
        } catch let failure as CommandFailure where failure.status == .interrupted {
            return  // As people end it.
        }
    }

    private static let pause = Duration.milliseconds(500)

    /// The downloads of the agent, which is started again where it has ended meanwhile.
    private static func downloads(_ place: AgentPlace) async throws -> [AgentDownload] {
        try AgentDownload.all(of: try await place.found())
    }

    private static func draw(_ place: AgentPlace) async throws {
        while true {
            try StandardOutput.writeLine(screen(of: try await downloads(place), terminalSize))
            try await Task.sleep(for: pause)
        }
    }

    /// What draws the table, within the rows and columns of a terminal: from the upper left corner,
    /// each line to its end, then to the end of the screen.
    static func screen(
        of downloads: [AgentDownload],
        _ size: (rows: Int, columns: Int)
    ) -> String {
        // The cursor ends two rows below: behind the last line, and behind the line that is written.
        let room = max(3, size.rows) - 2
        let shown = downloads.count > room ? room - 1 : downloads.count
        var lines = downloads.prefix(shown).map { String($0.line.prefix(size.columns)) }
        let more = downloads.count - shown
        if more > 0 { lines.append(String("and \(more) more".prefix(size.columns))) }
        return "\u{1B}[H" + lines.map { $0 + "\u{1B}[K\r\n" }.joined() + "\u{1B}[J"
    }

    private static var terminalSize: (rows: Int, columns: Int) {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_row > 0, size.ws_col > 0 else {
            return (24, 80)
        }
        return (Int(size.ws_row), Int(size.ws_col))
    }

    private static func tell(_ place: AgentPlace, asJSON: Bool) async throws {
        var known: [String: AgentDownload] = [:]
        while true {
            for download in try await downloads(place) where known[download.gid] != download {
                known[download.gid] = download
                try StandardOutput.writeLine(asJSON ? JSONLine.text(of: download) : download.line)
            }
            try await Task.sleep(for: pause)
        }
    }
}
