/// Compares the hit path with its peers and prints a table of ratios.
///
/// Arguments: parts of row names, to run only those rows; `--rounds N`; `--strict` to exit with 1
/// where a target is missed; `--json FILE` to add the ratios to a file. For one of its rows the
/// program starts itself, see ``HostsProcess``.
@main
struct HitPath {
    static func main() throws {
        if let hosts = HostsProcess(CommandLine.arguments) { return try hosts.run() }
        let options = try Options(CommandLine.arguments.dropFirst())
        let (rounds, isWanted) = (options.rounds, options.isWanted)
        let rows =
            try MemoryRows.make() + FacadeRows.make(where: isWanted)
            + DiskRows.make(where: isWanted) + KeyRows.make() + RuleRows.make()
        let wanted = rows.filter { isWanted($0.name) }
        let proxies = try ProxyRows.measure(rounds: rounds, where: isWanted)
        let misses = try MissRows.measure(rounds: rounds, where: isWanted)
        let transport = try TransportRows.measure(rounds: rounds, where: isWanted)
        let clients = try ClientRows.measure(rounds: rounds, where: isWanted)
        let table = Table(
            outcomes: wanted.map(Harness(rounds: rounds).measure) + transport.outcomes
                + misses.outcomes + clients.outcomes + proxies
        )
        table.print()
        if let file = options.json { try RatioLines(outcomes: table.outcomes).append(to: file) }
        transport.printProcessorTime()
        misses.printSwitches()
        clients.printAsked()
        transport.printFigures()
        let isWithin = try ProxyFigures.report(where: isWanted) && transport.isWithinTargets
        if options.isStrict, !(table.isWithinTargets && isWithin) { throw TargetMissed() }
    }

    private struct Options {
        var filters: [String] = []
        var rounds = 41
        var isStrict = false
        var json: String?

        init(_ arguments: ArraySlice<String>) throws {
            var arguments = arguments
            while let argument = arguments.popFirst() {
                switch argument {
                case "--rounds": rounds = arguments.popFirst().flatMap { Int($0) } ?? rounds
                case "--strict": isStrict = true
                case "--json":
                    json = arguments.popFirst()
                    if json == nil { throw BenchFailure("--json wants a file") }
                default: filters.append(argument)
                }
            }
        }

        func isWanted(_ name: String) -> Bool {
            filters.isEmpty || filters.contains { name.contains($0) }
        }
    }
}

struct TargetMissed: Error {}
