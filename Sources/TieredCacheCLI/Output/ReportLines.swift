import HTTPTypes
import SystemPackage
import TieredCache

/// The reports as text for people; programs use `--json`.
extension EntryReport {
    init(_ entry: EntrySummary) {
        self.init(
            url: entry.url,
            key: entry.key.string,
            status: entry.status,
            length: entry.length,
            stored: entry.storedBytes,
            isComplete: entry.isComplete,
            isPinned: entry.isPinned,
            headers: nil
        )
    }

    /// `200  12.3 MiB of 64.0 MiB  pinned  http://…`.
    var line: String {
        let all = length.map { ProgressLine.size($0) } ?? "?"
        let amount = isComplete ? all : "\(ProgressLine.size(stored)) of \(all)"
        let pin = isPinned ? "  pinned" : ""
        return "\(status)  \(amount)\(pin)  \(url)".asOneLine
    }
}

extension DiskFinding {
    /// `damaged  /…/a.body  blocks 1, 5  https://…  repaired`.
    var line: String {
        let what =
            switch kind {
            case .damagedBlocks, .damagedRecord: "damaged "
            case .missingBody: "missing "
            case .orphanedBody: "orphaned"
            case .quarantined: "set aside"
            case .unaccounted: "not ours"
            }
        let shown = blocks.prefix(8).map(String.init).joined(separator: ", ")
        let blocks = blocks.isEmpty ? "" : "blocks \(shown)\(blocks.count > 8 ? ", …" : "")"
        return [what, path.string, blocks, key?.string ?? "", isRepaired ? "repaired" : ""]
            .filter { !$0.isEmpty }.joined(separator: "  ").asOneLine
    }
}

extension VerifyReport {
    /// `12 entries, 345 blocks: none damaged`.
    var line: String {
        let outcome = damaged == 0 ? "none damaged" : "\(damaged) damaged, \(repaired) repaired"
        return "\(entries) entries, \(blocks) blocks: \(outcome)"
    }
}
