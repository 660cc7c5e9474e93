// The decision whether a whole body is what it has to be: its reader is told the end only after it.
extension EntryReader {
    /// Whether the end of the body may have to wait for the decision about it.
    var mayHaveToDecide: Bool {
        guard let judge else { return false }
        return judge.awaitsDecision(entry) || !judge.request.expectedDigests.isEmpty
    }

    /// Waits for the decision about a whole body.
    ///
    /// - Returns: the error of a body that was lost in part before it was compared.
    /// - Throws: the error of a body that is not what it has to be; `.cancelled`.
    func decide() async throws(CacheError) -> CacheError? {
        guard let judge else { return nil }
        let outcome = try await judge.decide(
            about: entry,
            length: length,
            comparesExpected: comparesExpected
        )
        switch outcome {
        case .accepted: return nil
        case .refused(let error): throw error
        case .undecided(let error): return error
        }
    }

    /// The same; a body that cannot be compared is an error.
    func awaitDecision() async throws(CacheError) {
        if let error = try await decide() { throw error }
    }
}
