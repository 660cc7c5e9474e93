import Foundation

/// Outcomes as JSON for Benchmarks/compare.py: an object a line, for each row and peer.
struct RatioLines {
    let outcomes: [Outcome]

    private struct Line: Encodable {
        var row: String
        var peer: String
        var ratio: Double
        /// What the design allows; of the first peer of a row alone.
        var atMost: Double?
        var nanoseconds: Double
        var peerNanoseconds: Double
    }

    /// Adds the lines to a file, which is made if it is not there.
    func append(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = try lines.map { try encoder.encode($0) + Data("\n".utf8) }
        guard let file = fopen(path, "a") else { throw BenchFailure("cannot write \(path)") }
        let isWritten = text.allSatisfy { line in
            line.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) == $0.count }
        }
        guard fclose(file) == 0, isWritten else { throw BenchFailure("cannot write \(path)") }
    }

    private var lines: [Line] {
        var lines: [Line] = []
        var head = ""
        for outcome in outcomes {
            // A row like "- its processor time" is one of the row above it.
            let isPart = outcome.row.name.hasPrefix("- ")
            if !isPart { head = outcome.row.name }
            let name = isPart ? "\(head), \(outcome.row.name.dropFirst(2))" : head
            for peer in outcome.row.contenders.indices.dropFirst() {
                lines.append(
                    Line(
                        row: name,
                        peer: outcome.row.contenders[peer].name,
                        ratio: outcome.ratio(to: peer),
                        atMost: peer == 1 ? outcome.row.target : nil,
                        nanoseconds: outcome.times[0].median,
                        peerNanoseconds: outcome.times[peer].median
                    )
                )
            }
        }
        return lines
    }
}
