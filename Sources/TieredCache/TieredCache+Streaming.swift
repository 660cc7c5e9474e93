extension TieredCache {
    /// Answers like ``response(for:)``, but asks the origin in pieces of our own shape.
    ///
    /// For players, which leave in the middle and come back elsewhere: the body costs little more
    /// than what is read of it, and a transfer that is under way lingers for the next request.
    ///
    /// - Parameters:
    ///   - request: what is wanted.
    ///   - deadline: how long its body waits for a byte.
    /// - Returns: the answer.
    /// - Throws: what ``response(for:)`` throws.
    package func streamedResponse(
        for request: CacheRequest,
        deadline: Duration = .seconds(30)
    ) async throws(CacheError) -> CacheResponse {
        try await engine.streamedResponse(for: request, deadline: deadline)
    }

    /// Opens a reader over an entry that is held, by its key alone.
    ///
    /// - Parameters:
    ///   - key: as ``EntrySummary/key`` gives it.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    /// - Throws: `.notCached` if nothing is held under the key; what ``reader(for:at:certainTo:options:)``
    ///   throws.
    public func reader(
        forKey key: CacheKey,
        options: ReaderOptions = ReaderOptions()
    ) async throws(CacheError) -> CacheReader {
        guard let entry = try await engine.storage.summary(of: key), !entry.url.isEmpty else {
            throw CacheError(.notCached, "nothing is held under the key \(key.redacted)")
        }
        let request = try CacheRequest(entry.url, key: entry.keyName)
        guard request.key == key else {
            throw CacheError(.notCached, "the entry under \(key.redacted) is no answer to GET")
        }
        return try await engine.reader(for: request, at: 0, certainTo: nil, options)
    }

    /// A reader for callers that block; asks nobody before it is opened or read.
    ///
    /// - Parameters:
    ///   - request: what is read; its range plays no role.
    ///   - options: deadline and read-ahead.
    /// - Returns: the reader.
    public func blockingReader(
        for request: CacheRequest,
        options: ReaderOptions = ReaderOptions()
    ) -> BlockingReader {
        BlockingReader(request, options, time: engine.time) {
            [engine] () async throws(CacheError) in
            try await engine.reader(for: request, at: 0, certainTo: nil, options)
        }
    }
}
