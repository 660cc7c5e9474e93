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
    ///   - hasReadAll: whether the reader has read all bytes, those that are lost by now too.
    ///   - budget: limits the wait.
    /// - Returns: the error of a body that was lost in part before it was compared.
    /// - Throws: the error of a body that is not what it has to be; `.cancelled`.
    func decide(
        hasReadAll: Bool,
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
            // What went past the disk is in no entry, and lost there without a fault.
            let hasPassed = state.withLock { $0.hasPassed }
            return hasReadAll && !hasPassed && entry.losses != losses ? error : nil
        case .refused(let error): throw error
        case .undecided(let error): return error
        }
    }

    /// Waits for all that is to be decided before the end of the body is told.
    ///
    /// - Parameters:
    ///   - offset: where the reader is.
    ///   - budget: limits the wait for a transfer.
    ///   - hasReadAll: as for ``decide(hasReadAll:budget:)``.
    /// - Throws: the error of a body that is not what it has to be, or cannot be compared.
    func awaitEnd(
        at offset: Int64,
        budget: ReadBudget,
        hasReadAll: Bool = false
    ) async throws(CacheError) {
        try await awaitPassed(at: offset, budget: budget)
        if let error = try await decide(hasReadAll: hasReadAll, budget: budget) { throw error }
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
