import TieredCache

/// The growth rates of entries between two views of the status page.
final class ProgressRates: Sendable {
    private struct Look {
        var time: MonotonicTime
        var stored: [String: Int64] = [:]
    }

    private let time: any TimeSource
    private let last: Guarded<Look>

    init(time: any TimeSource) {
        self.time = time
        last = Guarded(Look(time: time.monotonicTime()))
    }

    /// Updates the stored sizes.
    ///
    /// - Parameter entries: the keys and stored bytes of all entries.
    /// - Returns: bytes per second since the last update, by key, for entries that have grown.
    func update(_ entries: [(key: String, stored: Int64)]) -> [String: Int64] {
        let now = time.monotonicTime()
        let stored = Dictionary(entries.map { ($0.key, $0.stored) }) { max($0, $1) }
        let look = Look(time: now, stored: stored)
        let before = last.withLock { last in
            defer { last = look }
            return last
        }
        let milliseconds = max(1, before.time.duration(to: now) / .milliseconds(1))
        return stored.reduce(into: [:]) { rates, entry in
            let grown = entry.value - (before.stored[entry.key] ?? 0)
            guard grown > 0 else { return }
            rates[entry.key] = Int64(Double(grown) * 1000 / milliseconds)
        }
    }
}
