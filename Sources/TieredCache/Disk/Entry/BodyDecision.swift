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
/// expectation that is not met only the requests with that expectation. Writing to the body resets
/// the decision to undecided, unless the promise was broken.
struct BodyDecision: Sendable {
    /// The consequence of a comparison.
    enum Outcome: Sendable {
        case right
        /// The body is not what the origin promised.
        case wrong(CacheError)
        /// The body is not what the request expects.
        case unexpected(CacheError)
    }

    /// The comparison of a body with digests, by one task.
    struct Comparison: Sendable {
        /// The digests to compare with.
        let wanted: BodyExpectation
        /// Its end.
        let latch: Latch<Bool>
        /// Bumped at its end, for those that wait no longer than they may.
        let signal: ProgressSignal

        fileprivate init(wanted: BodyExpectation) {
            self.wanted = wanted
            let signal = ProgressSignal()
            self.signal = signal
            latch = Latch { signal.bump() }
        }
    }

    /// What remains to be done for the decision.
    enum Step: Sendable {
        /// Nothing: the body is right, no digest was promised, or the body has gaps.
        case nothing
        /// The caller compares.
        case compare(Comparison)
        /// Another task compares.
        case wait(Comparison)
        /// The body is not what the origin promised.
        case fail(CacheError)
        /// The body is not what the request expects.
        case refuse(CacheError)
    }

    /// The digests that all requests so far expect; empty once two of them differ, nil before the
    /// first one.
    private(set) var requester: [ContentDigest]?
    /// What the metadata promise; empty before the first ``note(promised:)``.
    private(set) var promised: [ContentDigest] = []
    /// The digests of the present bytes that are known: what they keep and meet follows from them.
    private(set) var found: [ContentDigest] = []
    /// The algorithms of which this system could compute none.
    private var lacking: Set<ContentDigest.Algorithm> = []
    private var comparison: Comparison?
    /// Whether the consequences of a comparison are being drawn: lookups may still find the body.
    private var isConcluding = false
    private var failure: CacheError?
    private var refusals: [[ContentDigest]: CacheError] = [:]
    /// The number of changes of the bytes.
    private(set) var version: UInt64 = 0

    /// Creates the decision of a stored body, or of a new one without a request yet.
    init(isNew: Bool) {
        requester = isNew ? nil : []
    }

    /// Whether nothing is known of the present bytes.
    var isBlank: Bool { found.isEmpty && lacking.isEmpty }

    /// The promise, if the present bytes keep each digest of it; the record may say so then.
    ///
    /// This system may lack an algorithm that another one has.
    var proven: [ContentDigest] {
        failure == nil && promised.allSatisfy(found.contains) ? promised : []
    }

    /// Whether the present bytes are known to have these digests, as far as this system can tell.
    private func has(_ digests: [ContentDigest]) -> Bool {
        digests.allSatisfy { found.contains($0) || lacking.contains($0.algorithm) }
    }

    /// Notes that a request uses the body.
    mutating func enter(expecting expected: [ContentDigest]) {
        requester = requester == nil || requester == expected ? expected : []
    }

    /// Notes what the metadata promise.
    ///
    /// - Returns: ``isDue(promised:)``.
    mutating func note(promised: [ContentDigest]) -> Bool {
        self.promised = promised
        return isDue(promised: promised)
    }

    /// Whether the body is still to be compared, so that none of its bytes may be given up.
    var needsBytes: Bool {
        guard failure == nil else { return false }
        if isDue(promised: promised) { return true }
        guard let requester, !requester.isEmpty else { return false }
        return !has(requester) && refusals[requester] == nil
    }

    /// Whether the body must not count as compared with a promise.
    func isDue(promised: [ContentDigest]) -> Bool {
        if failure != nil { return true }
        return !promised.isEmpty && (!has(promised) || comparison?.wanted.promised.isEmpty == false)
    }

    /// Whether the present bytes are known to be what a request wants.
    func hasMet(_ wanted: BodyExpectation) -> Bool {
        failure == nil && !isDue(promised: wanted.promised) && has(wanted.expected)
    }

    /// Whether nothing forbids that the body takes the name of a pinned one.
    func permitsName(promised: [ContentDigest]) -> Bool {
        failure == nil && has(promised) && has(requester ?? [])
    }

    /// What a request has to do for the decision.
    ///
    /// - Parameters:
    ///   - wanted: what the body has to be.
    ///   - isWhole: whether all bytes of the body can be read.
    ///   - mayBegin: whether the caller would compare; if not, it learns what is known, and waits
    ///     for no comparison.
    /// - Returns: the step; after ``Step/compare(_:)`` call ``didCompare(with:found:lacking:outcome:)``.
    mutating func nextStep(
        for wanted: BodyExpectation,
        isWhole: Bool,
        mayBegin: Bool = true
    ) -> Step {
        if isConcluding, let comparison { return .wait(comparison) }
        if let failure { return .fail(failure) }
        var wanted = wanted
        // A body that was fetched for one expectation alone is compared with it by all.
        if let requester, !requester.isEmpty { wanted.expected = requester }
        if let refusal = refusals[wanted.expected] {
            guard isDue(promised: wanted.promised) else { return .refuse(refusal) }
            // The promise comes first, and the expectation counts once.
            wanted.expected = []
        }
        let isMissing = !has(wanted.expected) || isDue(promised: wanted.promised)
        guard isMissing, mayBegin, isWhole else { return .nothing }
        if let comparison { return .wait(comparison) }
        let begun = Comparison(wanted: wanted)
        comparison = begun
        return .compare(begun)
    }

    /// Records a comparison, which goes on until ``endComparison()``.
    ///
    /// - Parameters:
    ///   - wanted: the digests that were compared with.
    ///   - found: the digests of the body that are known now.
    ///   - lacking: the algorithms of which none could be computed.
    ///   - outcome: the consequence.
    mutating func didCompare(
        with wanted: BodyExpectation,
        found: [ContentDigest],
        lacking: Set<ContentDigest.Algorithm> = [],
        outcome: Outcome
    ) {
        self.found = found
        self.lacking.formUnion(lacking)
        if !wanted.promised.isEmpty { promised = wanted.promised }
        switch outcome {
        case .wrong(let error): failure = error
        case .unexpected(let error): refusals[wanted.expected] = error
        case .right: return
        }
        isConcluding = true
    }

    mutating func endComparison() {
        comparison = nil
        isConcluding = false
    }

    /// Notes bytes that were written: what was found of others says nothing about them.
    mutating func didChangeBytes() {
        version += 1
        (found, lacking) = ([], [])
        refusals = [:]
    }
}
