// The decision whether a whole body is what it has to be: its reader is told the end only after it.
extension EntryReader {
    /// Whether the end of the body may have to wait for the decision about it.
    var mayHaveToDecide: Bool {
        guard let judge else { return false }
        return judge.awaitsDecision(entry) || !judge.request.expectedDigests.isEmpty
    }

    /// Waits for the decision about a whole body.
    ///
    /// - Parameters:
    ///   - isCompared: whether a transfer has compared the bytes that were read.
    ///   - budget: limits the wait.
    /// - Returns: the error of a body that was lost in part before it was compared.
    /// - Throws: the error of a body that is not what it has to be; `.cancelled`.
    func decide(
        isCompared: Bool = false,
        budget: ReadBudget
    ) async throws(CacheError) -> CacheError? {
        guard let judge else { return nil }
        let outcome = try await judge.decide(
            about: entry,
            length: length,
            comparesExpected: comparesExpected,
            passes: passes,
            waiting: { (signal, seen) async throws(CacheError) in
                try await budget.waitForComparison(signal, after: seen)
            }
        )
        switch outcome {
        case .accepted: return nil
        case .lost(let error):
            return hasReadLost && !isCompared ? error : nil
        case .refused(let error): throw error
        case .undecided(let error): return error
        }
    }

    /// Waits for all that is to be decided before the end of the body is told.
    ///
    /// - Parameters:
    ///   - offset: where the reader is.
    ///   - budget: limits the wait for a transfer.
    /// - Throws: the error of a body that is not what it has to be, or cannot be compared.
    func awaitEnd(
        at offset: Int64,
        budget: ReadBudget
    ) async throws(CacheError) {
        try await awaitPassed(at: offset, budget: budget)
        if let error = try await decide(budget: budget) { throw error }
    }

    /// Whether the reader has read all bytes, and some of them were lost since it was opened.
    private var hasReadLost: Bool {
        guard entry.losses != losses else { return false }
        let (taken, hasPassed) = state.withLock { ($0.taken, $0.hasPassed) }
        // What went past the disk is in no entry, and lost there without a fault.
        guard !hasPassed, let length else { return false }
        return taken.gaps(in: 0..<length).ranges.isEmpty
    }

    /// Waits for what a transfer finds of a body the end of which came past the disk.
    private func awaitPassed(at offset: Int64, budget: ReadBudget) async throws(CacheError) {
        if let mismatch = state.withLock({ $0.mismatch }) { throw mismatch }
        do throws(CacheError) {
            let passing = state.withLock { $0.passing }
            try await passing?.awaitDecision(at: offset, budget: budget)
        } catch {
            if error.code == .integrityFailed { state.withLock { $0.mismatch = error } }
            throw error
        }
    }
}
