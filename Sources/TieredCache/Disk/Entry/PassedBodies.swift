/// What transfers have found of a body the last bytes of which the disk did not take.
///
/// It concerns the requests that began to read before, and may have read those bytes; a later one
/// gets other bytes.
struct PassedBodies: Sendable {
    private struct Finding {
        let number: UInt64
        let error: CacheError
    }

    /// How many findings there were.
    private(set) var count: UInt64 = 0
    private var failure: Finding?
    private var refusals: [[ContentDigest]: Finding] = [:]
    /// The number of the last finding that met an expectation.
    private var met: [BodyExpectation: UInt64] = [:]

    /// Notes a finding, for the requests so far.
    ///
    /// - Parameters:
    ///   - outcome: what was found.
    ///   - wanted: what the body was compared with.
    mutating func add(_ outcome: BodyDecision.Outcome, of wanted: BodyExpectation) {
        count += 1
        let promise = BodyExpectation(promised: wanted.promised, expected: [])
        switch outcome {
        case .wrong(let error):
            failure = Finding(number: count, error: error)
        case .unexpected(let error):
            refusals[wanted.expected] = Finding(number: count, error: error)
            met[promise] = count
        case .right:
            met[promise] = count
            met[wanted] = count
        case .changed:
            break
        }
    }

    /// What a request learns.
    ///
    /// - Parameters:
    ///   - wanted: what the body has to be for it.
    ///   - number: ``count`` when it began to read.
    /// - Returns: nil if nothing was found that concerns it.
    func step(for wanted: BodyExpectation, since number: UInt64) -> BodyDecision.Step? {
        guard number < count else { return nil }
        if !wanted.promised.isEmpty, let failure, number < failure.number {
            return .fail(failure.error)
        }
        if let refusal = refusals[wanted.expected], number < refusal.number {
            return .refuse(refusal.error)
        }
        return met[wanted].map { number < $0 } == true ? .nothing : nil
    }

    /// Notes bytes that were written: what was found right says nothing about them.
    ///
    /// What was found wrong stays: readers that already received wrong bytes keep them.
    mutating func didChangeBytes() { met = [:] }
}
