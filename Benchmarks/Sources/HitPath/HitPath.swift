/// Compares the hit path with its peers and prints a table of ratios.
///
/// Arguments: parts of row names, to run only those rows; `--rounds N`; `--strict` to exit with 1
/// where a target is missed.
@main
struct HitPath {
    static func main() throws {
        var filters: [String] = []
        var rounds = 41
        var isStrict = false
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            switch argument {
            case "--rounds": rounds = arguments.popFirst().flatMap { Int($0) } ?? rounds
            case "--strict": isStrict = true
            default: filters.append(argument)
            }
        }
        let isWanted = { (name: String) in
            filters.isEmpty || filters.contains { name.contains($0) }
        }
        let rows =
            try MemoryRows.make() + FacadeRows.make(where: isWanted)
            + DiskRows.make(where: isWanted) + KeyRows.make() + RuleRows.make()
        let wanted = rows.filter { isWanted($0.name) }
        let proxies = try ProxyRows.measure(rounds: rounds, where: isWanted)
        let misses = try MissRows.measure(rounds: rounds, where: isWanted)
        let table = Table(
            outcomes: wanted.map(Harness(rounds: rounds).measure) + misses.outcomes + proxies
        )
        table.print()
        misses.printSwitches()
        let isWithin = try ProxyFigures.report(where: isWanted)
        if isStrict, !(table.isWithinTargets && isWithin) { throw TargetMissed() }
    }
}

struct TargetMissed: Error {}
