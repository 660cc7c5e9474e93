import ArgumentParser
import TieredCache

/// `tieredcache agent`: runs the downloads of a directory.
struct AgentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent",
        abstract: "Run the downloads of the cache directory, for programs that come and go.",
        discussion: """
            Speaks the JSON-RPC of aria2 at a socket, for programs of this user; with --rpc-port at a port of \
            127.0.0.1 as well, for programs that know the secret (--rpc-secret, or TIEREDCACHE_RPC_SECRET in the \
            environment, where other users cannot see it). 'add', 'downloads' and 'watch' start it by themselves.

            Ends when no download is left to run and no client has been there for 30 seconds; what is \
            paused goes on in the next one. SIGINT and SIGTERM end it as well; downloads go on in the next one.
            """
    )

    @Option(
        help: ArgumentHelp(
            "The socket to listen at.",
            discussion: """
                By default tieredcache.sock in $XDG_RUNTIME_DIR; AGENT in the cache directory for one that \
                is not the usual one.
                """,
            valueName: "path"
        )
    )
    var socket: String?

    @Option(help: ArgumentHelp("Listen at this port of 127.0.0.1, too.", valueName: "n"))
    var rpcPort: Int?

    @Option(help: ArgumentHelp("What programs have to know at the port.", valueName: "secret"))
    var rpcSecret: String?

    @Option(help: ArgumentHelp("Be a player proxy as well, at this port.", valueName: "n"))
    var proxyPort: Int?

    @Option(help: ArgumentHelp("How long to stay without work or clients.", valueName: "time"))
    var idle = TimeSpan(.seconds(30))

    @Flag(help: "Print where it listens as one line of JSON.")
    var json = false

    @Flag(help: .hidden)
    var background = false

    @OptionGroup(title: "Cache options")
    var cache: CacheOptions

    func validate() throws {
        for (name, port) in [("--rpc-port", rpcPort), ("--proxy-port", proxyPort)] {
            guard port.map({ (0...65_535).contains($0) }) ?? true else {
                throw ValidationError("\(name) must be from 0 to 65535")
            }
        }
        guard rpcSecret.map({ !$0.isEmpty }) ?? true else {
            throw ValidationError("--rpc-secret must not be empty")
        }
    }
}
