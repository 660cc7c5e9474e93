import Foundation

/// Prints outcomes as a table of ratios, as Markdown that also reads as text.
struct Table {
    let outcomes: [Outcome]

    func print() {
        let header = [
            "path", "ours", "against", "peer", "ratio", "at most", "", "p50", "p99", "p99.9",
        ]
        write(rows: [header] + outcomes.flatMap(lines))
        Swift.print("\np50, p99, p99.9: ours; operations under 1 µs are timed by sixteens.")
    }

    /// Whether every row that has a target reached it.
    var isWithinTargets: Bool {
        outcomes.allSatisfy { $0.ratio(to: 1) <= $0.row.target ?? .infinity }
    }

    private func lines(of outcome: Outcome) -> [[String]] {
        outcome.row.contenders.indices.dropFirst().map { index in
            let isFirst = index == 1
            let target = isFirst ? outcome.row.target : nil
            let ratio = outcome.ratio(to: index)
            return [
                isFirst ? outcome.row.name : "",
                isFirst ? Self.time(outcome.times[0].median) : "",
                outcome.row.contenders[index].name,
                Self.time(outcome.times[index].median),
                Self.number(ratio),
                target.map(Self.number) ?? "",
                target.map { ratio <= $0 ? "yes" : "NO" } ?? "",
            ] + percentiles(of: outcome, shown: isFirst)
        }
    }

    private func percentiles(of outcome: Outcome, shown: Bool) -> [String] {
        [50.0, 99.0, 99.9].map { percentile in
            shown ? Self.time(Double(outcome.latency.valueAtPercentile(percentile))) : ""
        }
    }

    private func write(rows: [[String]]) {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        for (index, row) in rows.enumerated() {
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            Swift.print("| " + cells.joined(separator: " | ") + " |")
            guard index == 0 else { continue }
            let rule = widths.map { String(repeating: "-", count: $0) }
            Swift.print("| " + rule.joined(separator: " | ") + " |")
        }
    }

    private static func number(_ value: Double) -> String {
        String(format: "%.2f", value)
    }

    private static func time(_ nanoseconds: Double) -> String {
        if nanoseconds < 1000 { return String(format: "%.1f ns", nanoseconds) }
        if nanoseconds < 1e6 { return String(format: "%.2f µs", nanoseconds / 1e3) }
        return String(format: "%.2f ms", nanoseconds / 1e6)
    }
}
