import ArgumentParser
import TieredCache

/// Filters and sorts the entries of `list`.
struct EntrySelection {
    /// The sort orders.
    enum Order: String, CaseIterable, ExpressibleByArgument {
        case url
        case length
        case stored = "held"
        case used
    }

    /// The filters.
    enum Filter: String, CaseIterable, ExpressibleByArgument {
        case complete
        case partial
        case pinned
        case prefetched
    }

    var order = Order.url
    var isReversed = false
    var filters: [Filter] = []
    var text: String?

    /// The entries to show.
    func apply(to entries: [EntrySummary]) -> [EntrySummary] {
        let wanted = entries.filter(isWanted).sorted(by: precedes)
        return isReversed ? wanted.reversed() : wanted
    }

    private func isWanted(_ entry: EntrySummary) -> Bool {
        if let text, !entry.url.contains(text) { return false }
        return filters.allSatisfy { filter in
            switch filter {
            case .complete: entry.isComplete
            case .partial: !entry.isComplete
            case .pinned: entry.isPinned
            case .prefetched: entry.isPrefetched
            }
        }
    }

    /// Compares by order, then by URL, so that the output is deterministic.
    private func precedes(_ left: EntrySummary, other right: EntrySummary) -> Bool {
        let (first, second) = (rank(left), rank(right))
        return first == second ? left.url < right.url : first < second
    }

    private func rank(_ entry: EntrySummary) -> Int64 {
        switch order {
        case .url: 0
        case .length: entry.length ?? entry.storedBytes
        case .stored: entry.storedBytes
        case .used: entry.lastUse ?? 0
        }
    }
}
