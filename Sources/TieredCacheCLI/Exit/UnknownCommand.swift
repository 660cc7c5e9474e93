import ArgumentParser

extension RootCommand {
    /// Refuses a command that there is not, and names the one that was meant.
    ///
    /// The parser would complain about the first option instead, which the root does not have.
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
            "there is no command '\(given)'\(meant ?? ""); see 'tieredcache --help'"
        )
    }
}

extension String {
    /// How many characters must be changed, added or left out to make one text of the other.
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
