import HTTPCaching

// The decision whether a whole body is what it has to be: its reader is told the end only after it.
extension EntryReader {
    /// Whether the end of the body may have to wait for the decision about it.
    var mayHaveToDecide: Bool {
        guard let judge else { return false }
        return digests != nil || judge.awaitsDecision(entry)
            || !judge.request.expectedDigests.isEmpty
    }

    /// Whether the reader has read all of the body in order, and found it right.
    var isRight: Bool { finding == .right }

    /// What the reader has found of the bytes that it got; nil if it cannot compare them.
    private var finding: ReaderDigests.Finding? {
        guard let digests, let length else { return nil }
        return digests.finding(atEnd: length)
    }

    /// Waits for all that is to be decided before the end of the body is told.
    ///
    /// A reader that has read the body in order compares what it got; the file decides for any
    /// other one, if it is whole.
    ///
    /// - Parameters:
    ///   - budget: limits the wait.
    ///   - decidesFile: whether to wait for the file in any case, so that lookups find it decided.
    /// - Throws: the error of a body that is not what it has to be; `.cancelled`.
    func awaitEnd(budget: ReadBudget, decidesFile: Bool = false) async throws(CacheError) {
        let isRight = isRight
        if !isRight || decidesFile {
            do throws(CacheError) {
                try await decide(budget: budget)
            } catch {
                // A file that is wrong, or a wait that ends, takes nothing back of right bytes.
                guard isRight else { throw error }
            }
        } else {
            judge?.beginDeciding(about: entry, length: length)
        }
        guard let digests, let length else { return }
        try digests.check(atEnd: length)
    }

    /// Waits for the decision about the file, if it is whole.
    private func decide(budget: ReadBudget) async throws(CacheError) {
        guard let judge else { return }
        let outcome = try await judge.decide(
            about: entry,
            length: length,
            comparesExpected: comparesExpected,
            waiting: { (signal, seen) async throws(CacheError) in
                try await budget.waitForComparison(signal, after: seen)
            }
        )
        if case .refused(let error) = outcome { throw error }
    }
}
