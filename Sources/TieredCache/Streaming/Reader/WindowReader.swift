import FoundationEssentials

/// Reads a body that is not stored from its window, once, in order.
final class WindowReader: BodySource {
    let window: WindowBody
    private let subscription: Subscription
    private let range: Range<Int64>

    /// Reads the bytes of a window, claimed for this reader, that lie in `range`.
    init(_ window: WindowBody, range: Range<Int64>, subscription: Subscription) {
        self.window = window
        self.subscription = subscription
        self.range = range
    }

    deinit {
        leave()
    }

    var counts: ByteCounts {
        var counts = ByteCounts()
        let end = min(window.position, range.upperBound)
        counts.add(fromOrigin: max(0, end - range.lowerBound))
        return counts
    }

    func open() -> ReaderBytes { .sequential(self) }

    private func leave() {
        window.leave()
        subscription.cancel()
    }

    // MARK: Sequential reads

    func next(atMost count: Int) async throws(CacheError) -> Data? {
        while true {
            let position = max(window.position, range.lowerBound)
            guard position < range.upperBound else {
                try await finish()
                return nil
            }
            switch try take(at: position, atMost: Int(clamping: range.upperBound - position)) {
            case .bytes(let bytes): return bytes
            case .awaited(let seen): try await wait(after: seen)
            case .end: return nil
            // Another task has taken these bytes meanwhile, which is no end.
            case .outOfReach: continue
            }
        }
    }

    /// Waits for the verification of a complete body, and leaves the transfer: nothing else needs
    /// the rest of the body.
    func finish() async throws(CacheError) {
        while let seen = try undecided { try await wait(after: seen) }
        leave()
    }

    private func wait(after seen: UInt64) async throws(CacheError) {
        guard !Task.isCancelled else { throw .readCancelled }
        await window.signal.wait(after: seen)
    }

    /// Whether all of the body was read, and the end may only be told after its comparison.
    var isAtJudgedEnd: Bool { window.awaitsDecision && window.position == window.completeLength }

    /// The version of the signal with which the comparison of a body that was read to its end is
    /// still under way; nil after it, and before that end.
    private var undecided: UInt64? {
        get throws(CacheError) {
            guard isAtJudgedEnd,
                case .awaited(let seen) = try window.take(at: window.position, atMost: 0)
            else { return nil }
            return seen
        }
    }

    /// Waits for the comparison of a body that was read to its end; does nothing before that.
    ///
    /// - Throws: what the comparison has found, at each call; what the budget says.
    func awaitDecision(at offset: Int64, budget: ReadBudget) async throws(CacheError) {
        while let seen = try undecided {
            try budget.checkStop()
            try budget.check(offset)
            await budget.wait(on: window.signal, after: seen)
        }
    }

    // MARK: Reads at an offset

    /// Takes bytes if they are available, and drops those before them; never waits.
    ///
    /// Bytes more than `reach` bytes ahead are out of reach: a new request costs less than the
    /// bytes in between.
    func take(
        at offset: Int64,
        atMost count: Int,
        within reach: Int64 = .max
    ) throws(CacheError) -> WindowBody.Taken {
        guard offset < range.upperBound else { return .end }
        let taken = try window.take(at: offset, atMost: count, within: reach)
        if case .end = taken { try checkEnd() }
        return taken
    }

    /// Throws for an early end, which must not look like the end of the body (invariant 3).
    private func checkEnd() throws(CacheError) {
        let end = window.position
        guard end > range.lowerBound || range.lowerBound == 0 else {
            throw CacheError(
                .rangeNotSatisfiable,
                "byte \(range.lowerBound) does not exist: the whole has \(end) bytes"
            )
        }
        guard let length = window.completeLength else { return }
        let wanted = min(range.upperBound, length, window.end)
        guard end < wanted else { return }
        throw CacheError(.originFailed, "the body ended at byte \(end) of \(wanted)")
    }
}
