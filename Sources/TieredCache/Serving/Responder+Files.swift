import SystemPackage

// Files for other programs, which verify nothing themselves.
extension Responder {
    /// A file that equals the complete body that is stored for a request; compares the body first,
    /// if that was not done yet.
    ///
    /// - Parameter request: identifies the body, and says what is expected of it.
    /// - Returns: nil if not all of a body is stored, or it is not what it has to be.
    /// - Throws: `.localStorage`, `.notOwner`; `.cancelled`.
    func filePath(for request: CacheRequest) async throws(CacheError) -> FilePath? {
        try request.checkURL()
        let found = try await storage.withStore { (store) throws(CacheError) in
            try store.entry(for: request.key)
        }
        guard let entry = found, entry.isComplete else { return nil }
        let judge = bodyJudge(for: request)
        judge.enter(entry)
        do throws(CacheError) {
            guard case .accepted = try await judge.decide(about: entry) else { return nil }
        } catch  where [.representationChanged, .integrityFailed].contains(error.code) {
            return nil  // The judge has logged it.
        }
        return try await storage.withStore { (store) throws(CacheError) in
            let path = try store.bodyPath(of: entry)
            // A block may have been lost and written again meanwhile.
            return judge.accepts(entry) ? path : nil
        }
    }
}
