import HTTPCaching

/// Remembers whose bytes were not what they should be, so that they are fetched again exactly once
/// (row 27).
struct IntegrityLedger: Sendable {
    /// What follows from a digest that does not match.
    enum Decision: Hashable, Sendable {
        /// Fetch all of it once more, past every cache on the way.
        case refetch
        /// It was fetched again already: give up.
        case giveUp
    }

    /// After this time a mismatch counts as the first again.
    static let memory = Duration.seconds(600)
    /// More keys than this are not remembered; the oldest is forgotten.
    static let capacity = 256

    private var mismatches: [CacheKey: MonotonicTime] = [:]

    /// Whether the next fetch of the key is the second try.
    func isSecondTry(_ key: CacheKey, now: MonotonicTime) -> Bool {
        mismatches[key].map { $0.duration(to: now) < Self.memory } ?? false
    }

    mutating func didMismatch(_ key: CacheKey, now: MonotonicTime) -> Decision {
        guard !isSecondTry(key, now: now) else {
            mismatches[key] = nil
            return .giveUp
        }
        if mismatches.count >= Self.capacity,
            let oldest = mismatches.min(by: { $0.value < $1.value })?.key
        {
            mismatches[oldest] = nil
        }
        mismatches[key] = now
        return .refetch
    }

    mutating func didMatch(_ key: CacheKey) {
        mismatches[key] = nil
    }
}
