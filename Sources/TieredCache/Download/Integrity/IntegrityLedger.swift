import HTTPCaching

/// Remembers keys with mismatching bodies, so that each is fetched again exactly once (row 27).
///
/// A broken promise of the origin concerns all requests of a key. An expectation that was not met
/// concerns the requests with that expectation alone, and is remembered apart.
struct IntegrityLedger: Sendable {
    /// The consequence of a digest mismatch.
    enum Decision: Hashable, Sendable {
        /// Fetch the whole once more, past every cache on the path.
        case refetch
        /// It was fetched again already: fail.
        case giveUp
    }

    private struct Subject: Hashable {
        let key: CacheKey
        /// What a request expected; empty for the origin's promise.
        let expected: [ContentDigest]
    }

    private struct Mismatch {
        var time: MonotonicTime
        /// Whether lookups no longer find the body.
        var isGone: Bool
    }

    /// After this time a mismatch counts as the first again.
    static let lifetime = Duration.seconds(600)
    /// The maximum number of mismatches; the oldest is forgotten for a new one.
    static let capacity = 256

    private var mismatches: [Subject: Mismatch] = [:]

    /// Whether the next fetch of the key is the second attempt.
    func isSecondTry(
        _ key: CacheKey,
        expecting expected: [ContentDigest] = [],
        now: MonotonicTime
    ) -> Bool {
        mismatch(key, expecting: expected, now: now) != nil
            || (!expected.isEmpty && mismatch(key, expecting: [], now: now) != nil)
    }

    /// Whether a request must not be answered with the stored body, which it has refused.
    func mustPassStored(
        _ key: CacheKey,
        expecting expected: [ContentDigest],
        now: MonotonicTime
    ) -> Bool {
        guard !mismatches.isEmpty else { return false }
        return mismatch(key, expecting: expected, now: now)?.isGone == false
            || mismatch(key, expecting: [], now: now)?.isGone == false
    }

    private func mismatch(
        _ key: CacheKey,
        expecting expected: [ContentDigest],
        now: MonotonicTime
    ) -> Mismatch? {
        let known = mismatches[Subject(key: key, expected: expected)]
        return known.flatMap { $0.time.duration(to: now) < Self.lifetime ? $0 : nil }
    }

    /// The consequence of one more mismatch.
    func decision(
        about key: CacheKey,
        expecting expected: [ContentDigest] = [],
        now: MonotonicTime
    ) -> Decision {
        mismatch(key, expecting: expected, now: now) == nil ? .refetch : .giveUp
    }

    /// Notes a body that is not what was promised or expected.
    ///
    /// - Parameters:
    ///   - key: the key of the body.
    ///   - expected: the expectation that was not met; empty for the origin's promise.
    ///   - isGone: whether lookups no longer find the body.
    ///   - now: the time.
    /// - Returns: whether to fetch it once more.
    mutating func didMismatch(
        _ key: CacheKey,
        expecting expected: [ContentDigest] = [],
        isGone: Bool = true,
        now: MonotonicTime
    ) -> Decision {
        let subject = Subject(key: key, expected: expected)
        let decision = decision(about: key, expecting: expected, now: now)
        switch decision {
        case .refetch: note(Mismatch(time: now, isGone: isGone), of: subject)
        case .giveUp: mismatches[subject] = nil
        }
        return decision
    }

    /// Notes a request that has met a body which its expectation refused before.
    mutating func didMeetAgain(
        _ key: CacheKey,
        expecting expected: [ContentDigest],
        now: MonotonicTime
    ) {
        guard mismatch(key, expecting: expected, now: now) == nil else { return }
        note(Mismatch(time: now, isGone: false), of: Subject(key: key, expected: expected))
    }

    private mutating func note(_ mismatch: Mismatch, of subject: Subject) {
        if mismatches.count >= Self.capacity,
            let oldest = mismatches.min(by: { $0.value.time < $1.value.time })?.key
        {
            mismatches[oldest] = nil
        }
        mismatches[subject] = mismatch
    }

    mutating func didMatch(_ key: CacheKey, expecting expected: [ContentDigest] = []) {
        mismatches[Subject(key: key, expected: expected)] = nil
    }
}
