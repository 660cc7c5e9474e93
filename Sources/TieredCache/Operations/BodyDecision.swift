/// Whether one body is what the digests promised for it say: decided once, when it is whole.
///
/// Transfers and readers add what was promised to them before the body is whole. The first of them
/// that needs the decision makes it, and the others wait for it.
struct BodyDecision: Sendable {
    /// The consequence of a comparison.
    enum Outcome: Sendable {
        case right
        case wrong(CacheError)
        /// The body is not whole any more.
        case none
    }

    /// What remains to be done for the decision.
    enum Step: Sendable {
        /// Nothing: no digest was promised, or the body is right.
        case nothing
        /// Compare the body with these digests; others wait at the latch.
        case compare([ContentDigest], Latch<Void>)
        /// Another task compares.
        case wait(Latch<Void>)
        /// The body is wrong.
        case fail(CacheError)
    }

    /// The promised digests with which the body has not been compared.
    private var due: [ContentDigest] = []
    private var comparison: Latch<Void>?
    private var failure: CacheError?

    /// Whether the body must not count as whole yet.
    var isDue: Bool { failure != nil || !due.isEmpty }

    mutating func expect(_ digests: [ContentDigest]) {
        due += digests.filter { !due.contains($0) }
    }

    mutating func nextStep() -> Step {
        if let failure { return .fail(failure) }
        if let comparison { return .wait(comparison) }
        guard !due.isEmpty else { return .nothing }
        let latch = Latch<Void>()
        comparison = latch
        return .compare(due, latch)
    }

    mutating func didCompare(with digests: [ContentDigest], outcome: Outcome) {
        comparison = nil
        switch outcome {
        case .right: due.removeAll { digests.contains($0) }
        case .wrong(let error): failure = error
        case .none: break
        }
    }
}
