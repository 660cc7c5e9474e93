import Testing

@_spi(Benchmarks) @testable import TieredCache

/// The states of the decision about one body.
@Suite("Disk tier: the decision about a body", .timeLimit(.minutes(1)))
struct BodyDecisionStateTests {
    private enum Kind: Equatable {
        case nothing, compare, wait, fail, refuse
    }

    private static func digests(_ byte: UInt8) -> [ContentDigest] {
        [ContentDigest(.md5, bytes: Array(repeating: byte, count: 16))].compactMap { $0 }
    }

    private let promise = BodyExpectation(promised: digests(1), expected: [])
    private let error = CacheError(.integrityFailed, "wrong")

    private func step(
        _ decision: inout BodyDecision,
        _ wanted: BodyExpectation,
        isWhole: Bool = true,
        mayBegin: Bool = true
    ) -> Kind {
        switch decision.nextStep(for: wanted, isWhole: isWhole, mayBegin: mayBegin) {
        case .nothing: .nothing
        case .compare: .compare
        case .wait: .wait
        case .fail: .fail
        case .refuse: .refuse
        }
    }

    @Test("one compares, the others wait, and later ones have nothing to do")
    func kept() {
        var decision = BodyDecision(isNew: true)
        #expect(step(&decision, promise, isWhole: false) == .nothing)
        #expect(decision.isDue(promised: promise.promised))
        #expect(step(&decision, promise) == .compare)
        #expect(step(&decision, promise) == .wait)
        decision.didCompare(with: promise, found: promise.promised, outcome: .right)
        // The comparison goes on until the body has its name.
        #expect(step(&decision, promise) == .wait)
        decision.endComparison()
        #expect(step(&decision, promise) == .nothing)
        #expect(!decision.isDue(promised: promise.promised))
        decision.didChangeBytes()
        #expect(step(&decision, promise) == .compare)
    }

    @Test("one that may not begin a comparison waits for none, and learns what one has found")
    func partReader() {
        var decision = BodyDecision(isNew: true)
        func next() -> Kind { step(&decision, promise, mayBegin: false) }
        #expect(next() == .nothing)
        #expect(step(&decision, promise) == .compare)
        #expect(next() == .nothing)
        decision.didCompare(with: promise, found: [], outcome: .wrong(error))
        // Until lookups do not find it any more.
        #expect(next() == .wait)
        decision.endComparison()
        #expect(next() == .fail)
    }

    @Test("a broken promise fails every request, also once a block is gone")
    func broken() {
        var decision = BodyDecision(isNew: true)
        #expect(step(&decision, promise) == .compare)
        decision.didCompare(with: promise, found: [], outcome: .wrong(error))
        decision.endComparison()
        decision.didChangeBytes()
        #expect(step(&decision, promise, isWhole: false) == .fail)
        #expect(step(&decision, BodyExpectation(promised: [], expected: [])) == .fail)
        #expect(!decision.permitsName(promised: []))
    }

    @Test("an expectation that is not met concerns the requests with it alone")
    func refused() {
        var decision = BodyDecision(isNew: true)
        let mistaken = BodyExpectation(promised: promise.promised, expected: Self.digests(2))
        decision.enter(expecting: mistaken.expected)
        #expect(decision.requester == mistaken.expected)
        decision.enter(expecting: [])
        #expect(decision.requester == [])
        #expect(step(&decision, mistaken) == .compare)
        decision.didCompare(with: mistaken, found: promise.promised, outcome: .unexpected(error))
        #expect(step(&decision, mistaken) == .wait)
        decision.endComparison()
        #expect(step(&decision, mistaken) == .refuse)
        #expect(step(&decision, promise) == .nothing)
        #expect(decision.permitsName(promised: promise.promised))
    }

    @Test("a body that was made for one expectation has no name before it is met")
    func name() {
        var decision = BodyDecision(isNew: true)
        let wanted = BodyExpectation(promised: [], expected: Self.digests(2))
        decision.enter(expecting: wanted.expected)
        #expect(!decision.permitsName(promised: []))
        // Also where its request reads a range alone, and so does not ask for it.
        #expect(step(&decision, BodyExpectation(promised: [], expected: [])) == .compare)
        decision.didCompare(with: wanted, found: wanted.expected, outcome: .right)
        decision.endComparison()
        #expect(decision.permitsName(promised: []))
    }

    @Test("a request that expects nothing does not wait for an expectation")
    func apart() {
        var decision = BodyDecision(isNew: false)
        let wanted = BodyExpectation(promised: [], expected: Self.digests(2))
        #expect(step(&decision, promise) == .compare)
        decision.didCompare(with: promise, found: promise.promised, outcome: .right)
        decision.endComparison()
        #expect(step(&decision, wanted) == .compare)
        #expect(!decision.isDue(promised: promise.promised))
        #expect(step(&decision, promise) == .nothing)
    }

    @Test("a comparison without all algorithms is kept here, and proves nothing to others")
    func unproven() {
        var decision = BodyDecision(isNew: false)
        #expect(step(&decision, promise) == .compare)
        decision.didCompare(with: promise, found: [], lacking: [.md5], outcome: .right)
        decision.endComparison()
        #expect(step(&decision, promise) == .nothing)
        #expect(!decision.isDue(promised: promise.promised) && decision.proven.isEmpty)
        decision.didChangeBytes()
        #expect(step(&decision, promise) == .compare)
        decision.didCompare(with: promise, found: promise.promised, outcome: .right)
        #expect(decision.proven == promise.promised)
        decision.didChangeBytes()
        #expect(decision.proven.isEmpty)
    }
}
