/// What a body has to be: as the origin promised it to everybody, and as one request expects it.
struct BodyExpectation: Sendable {
    /// The digests that the origin promised; none for a request that does not verify them.
    var promised: [ContentDigest]
    /// The digests that the request expects.
    var expected: [ContentDigest]

    var isEmpty: Bool { promised.isEmpty && expected.isEmpty }
}

/// Whether the body of one generation is what it has to be; its entry owns it.
///
/// All readers and transfers of the generation find the same decision here. The first of them that
/// needs it makes it, and the others wait for it. A broken promise concerns all of them, an
/// expectation that is not met only the requests with that expectation. Bytes that are written
/// later take back what was found right.
struct BodyDecision: Sendable {
    /// The consequence of a comparison.
    enum Outcome: Sendable {
        case right
        /// The body is not what the origin promised.
        case wrong(CacheError)
        /// The body is not what the request expects.
        case unexpected(CacheError)
        /// The bytes have changed meanwhile.
        case changed
    }

    /// The comparison of a body with digests, by one task.
    struct Comparison: Sendable {
        /// The digests to compare with.
        let wanted: BodyExpectation
        /// Whether the promise is compared, rather than an expectation alone.
        let comparesPromise: Bool
        /// The digests of the present bytes that are known.
        let found: [ContentDigest]
        /// Others wait here.
        let latch: Latch<Void>
    }

    /// What remains to be done for the decision.
    enum Step: Sendable {
        /// Nothing: the body is right, no digest was promised, or the body has gaps.
        case nothing
        /// The caller compares.
        case compare(Comparison)
        /// Another task compares.
        case wait(Latch<Void>)
        /// The body is not what the origin promised.
        case fail(CacheError)
        /// The body is not what the request expects.
        case refuse(CacheError)
    }

    /// The digests that all requests so far expect; empty once two of them differ, nil before the
    /// first one.
    private(set) var requester: [ContentDigest]?
    /// The promise that the present bytes keep.
    private(set) var kept: [ContentDigest] = []
    private var met: Set<[ContentDigest]> = []
    private var found: [ContentDigest] = []
    private var comparison: Comparison?
    private var failure: CacheError?
    private var refusals: [[ContentDigest]: CacheError] = [:]
    /// The number of changes of the bytes.
    private(set) var version: UInt64 = 0

    /// Creates the decision of a stored body, or of a new one without a request yet.
    init(isNew: Bool) {
        requester = isNew ? nil : []
    }

    /// Notes that a request uses the body.
    mutating func enter(expecting expected: [ContentDigest]) {
        requester = requester == nil || requester == expected ? expected : []
    }

    /// Whether the body must not count as compared with a promise.
    func isDue(promised: [ContentDigest]) -> Bool {
        if failure != nil { return true }
        return !promised.isEmpty && (kept != promised || comparison?.comparesPromise == true)
    }

    /// Whether nothing forbids that the body takes the name of a pinned one.
    func permitsName(promised: [ContentDigest]) -> Bool {
        guard failure == nil, promised.isEmpty || kept == promised else { return false }
        guard let requester, !requester.isEmpty else { return true }
        return met.contains(requester)
    }

    /// What a request has to do for the decision.
    ///
    /// - Parameters:
    ///   - wanted: what the body has to be.
    ///   - isWhole: whether all bytes of the body can be read.
    ///   - mayBegin: whether the caller would compare; if not, it only waits for one that does.
    /// - Returns: the step; after ``Step/compare(_:)`` call ``didCompare(_:found:outcome:)``.
    mutating func nextStep(
        for wanted: BodyExpectation,
        isWhole: Bool,
        mayBegin: Bool = true
    ) -> Step {
        if let failure { return .fail(failure) }
        var wanted = wanted
        // A body that was fetched for one expectation alone is compared with it by all.
        if let requester, !requester.isEmpty { wanted.expected = requester }
        if let refusal = refusals[wanted.expected] {
            guard isDue(promised: wanted.promised) else { return .refuse(refusal) }
            // The promise comes first, and the expectation counts once.
            wanted.expected = []
        }
        let isExpectationDue = !wanted.expected.isEmpty && !met.contains(wanted.expected)
        guard isWhole, isExpectationDue || isDue(promised: wanted.promised) else { return .nothing }
        if let comparison { return .wait(comparison.latch) }
        guard mayBegin else { return .nothing }
        let begun = Comparison(
            wanted: wanted,
            comparesPromise: isDue(promised: wanted.promised),
            found: found,
            latch: Latch()
        )
        comparison = begun
        return .compare(begun)
    }

    /// Records a comparison, which goes on until ``endComparison()``.
    ///
    /// - Parameters:
    ///   - wanted: the digests that were compared with.
    ///   - found: the digests of the body that are known now.
    ///   - outcome: the consequence.
    mutating func didCompare(
        with wanted: BodyExpectation,
        found: [ContentDigest],
        outcome: Outcome
    ) {
        if case .changed = outcome { return }
        self.found = found
        switch outcome {
        case .wrong(let error):
            failure = error
        case .unexpected(let error):
            kept = wanted.promised.isEmpty ? kept : wanted.promised
            refusals[wanted.expected] = error
        case .right:
            kept = wanted.promised.isEmpty ? kept : wanted.promised
            if !wanted.expected.isEmpty { met.insert(wanted.expected) }
        case .changed:
            break
        }
    }

    /// Notes that a body that was not stored failed an expectation.
    mutating func refuse(_ expected: [ContentDigest], because error: CacheError) {
        refusals[expected] = error
    }

    mutating func endComparison() { comparison = nil }

    /// Notes bytes that were written: what was found of others says nothing about them.
    mutating func didChangeBytes() {
        version += 1
        kept = []
        met = []
        found = []
        refusals = [:]
    }
}
