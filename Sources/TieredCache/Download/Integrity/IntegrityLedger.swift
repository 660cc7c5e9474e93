import HTTPCaching

/// Remembers keys with mismatching bodies, so that each is fetched again exactly once (row 27).
struct IntegrityLedger: Sendable {
    /// The consequence of a digest mismatch.
    enum Decision: Hashable, Sendable {
        /// Fetch the whole once more, past every cache on the path.
        case refetch
        /// It was fetched again already: fail.
        case giveUp
    }

    /// After this time a mismatch counts as the first again.
    static let lifetime = Duration.seconds(600)
    /// The maximum number of keys; the oldest is forgotten for a new one.
    static let capacity = 256

    private var mismatches: [CacheKey: MonotonicTime] = [:]

    /// Whether the next fetch of the key is the second attempt.
    func isSecondTry(_ key: CacheKey, now: MonotonicTime) -> Bool {
        mismatches[key].map { $0.duration(to: now) < Self.lifetime } ?? false
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
