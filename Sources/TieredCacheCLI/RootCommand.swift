import ArgumentParser

/// The root command, `tieredcache`.
struct RootCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tieredcache",
        abstract: "Gets the bytes of a URL from memory, disk or the origin, in that order.",
        discussion: """
            Every byte that was fetched is kept in the cache directory, with a checksum; an \
            interrupted download goes on where it stopped. Start with 'tieredcache demo'.

            Exit codes: 0 done, 64 usage, 66 not in the cache, 69 origin or network failed, \
            74 local I/O failed, 75 another process owns the directory, 130 interrupted.
            """,
        version: "0.1.0",
        subcommands: [
            GetCommand.self, PrefetchCommand.self, AddCommand.self, DownloadsCommand.self,
            WatchCommand.self, ResumeCommand.self, PauseCommand.self, CancelCommand.self,
            AgentCommand.self, ServeCommand.self, URLCommand.self,
            ExecCommand.self, BackgroundCommand.self, ListCommand.self, StatsCommand.self,
            EventsCommand.self, ShowCommand.self, PathCommand.self, VerifyCommand.self,
            RemoveCommand.self, ClearCommand.self, TrimCommand.self, DemoCommand.self,
        ]
    )
}
