import ArgumentParser

extension RootCommand {
    /// Refuses an unknown command, and suggests a similar one.
    ///
    /// The parser would report the first option instead, because the root command does not have it.
    ///
    /// - Parameter arguments: the arguments after the program's name.
    /// - Throws: ``CommandFailure`` with ``ExitStatus/usage``.
    static func requireKnownCommand(
        in arguments: some Collection<String>
    ) throws(CommandFailure) {
        guard let given = arguments.first, !given.hasPrefix("-") else { return }
        let commands = configuration.subcommands.compactMap { $0.configuration.commandName }
        guard !(commands + ["help"]).contains(given) else { return }
        let nearest = commands.min { $0.distance(to: given) < $1.distance(to: given) }
        let meant = nearest.flatMap {
            $0.distance(to: given) <= 2 ? "; did you mean '\($0)'?" : nil
        }
        throw CommandFailure(
            .usage,
            message: "there is no command '\(given)'\(meant ?? ""); see 'tieredcache --help'"
        )
    }
}

extension String {
    /// The Levenshtein distance between two texts.
    func distance(to other: String) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (line, character) in enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for (column, second) in other.enumerated() {
                let substituted = diagonal + (character == second ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = Swift.min(substituted, diagonal + 1, row[column] + 1)
            }
        }
        return row[other.count]
    }
}
