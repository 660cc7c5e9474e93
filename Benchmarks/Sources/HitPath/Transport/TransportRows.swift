import Foundation

/// The transport beside its peers, from nginx on loopback in another process.
enum TransportRows {
    /// What the rows gave.
    struct Report {
        var outcomes: [Outcome] = []
        /// By row: its name, and the processor time per operation of each contender.
        var processorTime: [(name: String, contenders: [(name: String, microseconds: Double)])] = []
        var figures: [Figure] = []

        /// Says what each operation costs the process, all threads together.
        func printProcessorTime() {
            guard !processorTime.isEmpty else { return }
            print("\nProcessor time per operation of the transport's rows:")
            for row in processorTime {
                let parts = row.contenders.map {
                    "\($0.name) \(String(format: "%.1f", $0.microseconds)) µs"
                }
                print("- \(row.name): \(parts.joined(separator: ", "))")
            }
        }

        /// Prints what is no time.
        func printFigures() {
            guard !figures.isEmpty else { return }
            print("\n| figure | the transport | AsyncHTTPClient | |\n| --- | --- | --- | --- |")
            for figure in figures { print(figure.line) }
        }

        /// Whether no figure is above the peer's; the table says it of times.
        var isWithinTargets: Bool { figures.allSatisfy(\.isWithinTarget) }
    }

    /// What is no time: at most the peer's.
    struct Figure {
        let name: String
        let ours: Double
        let peer: Double
        /// A word after the numbers, or nothing.
        let unit: String

        var isWithinTarget: Bool { ours <= peer }

        fileprivate var line: String {
            let numbers = [ours, peer].map { String(format: "%.4g", $0) + unit }
            return "| \(name) | \(numbers[0]) | \(numbers[1]) | \(isWithinTarget ? "yes" : "NO") |"
        }
    }

    /// Measures the rows whose names are wanted.
    ///
    /// - Parameters:
    ///   - rounds: how many there are at most.
    ///   - isWanted: whether a row with a name is.
    /// - Returns: what they gave; nothing of a row that lacks a program, which is said then.
    /// - Throws: why a row could not be measured.
    static func measure(rounds: Int, where isWanted: (String) -> Bool) throws -> Report {
        let rows: [(name: String, measure: (Int, inout Report) throws -> Void)] = [
            (SmallRows.plain, SmallRows.measurePlain),
            (SmallRows.secure, SmallRows.measureSecure),
            (FilmRow.name, FilmRow.measure),
            (HostsRow.name, HostsRow.measure),
        ]
        let wanted = rows.filter { isWanted($0.name) }
        var report = Report()
        guard !wanted.isEmpty else { return report }
        guard BenchTools.path("nginx") != nil, BenchTools.path("taskset") != nil else {
            print("No rows of the transport: nginx or taskset is missing.")
            return report
        }
        for row in wanted { try row.measure(rounds, &report) }
        return report
    }
}
