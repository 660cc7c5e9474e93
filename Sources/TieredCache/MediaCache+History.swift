public import HTTPCaching

extension MediaCache {
    /// What the directory has done since it was made, over all processes that owned it.
    ///
    /// Includes what this process has counted, if it is the owner; a guest sees what the owner has
    /// written down, which it does every ten seconds and at its end. What guests do is not counted.
    ///
    /// - Returns: the sums, or nil where none are kept or nothing was counted yet.
    /// - Throws: `.localStorage`, also where the sums are damaged; the owner then starts afresh.
    public func lifetimeStatistics() async throws(CacheError) -> MediaCache.LifetimeStatistics? {
        try await engine.storage.withHistory { (history, store) throws(CacheError) in
            try history.lifetime(of: store)
        } ?? nil
    }

    /// What happened in the directory, as far as its event log goes back.
    ///
    /// Misses and why, what was stored, and what left and why; no hits.
    ///
    /// - Parameters:
    ///   - request: the request that identifies the entry and its variants; nil for all entries.
    ///   - start: the time of the first event to return; nil for all.
    /// - Returns: the events, oldest first.
    /// - Throws: `.localStorage`.
    public func recordedEvents(
        for request: CacheRequest? = nil,
        since start: WallTime? = nil
    ) async throws(CacheError) -> [MediaCache.RecordedEvent] {
        try request?.checkURL()
        let keys = request.map { [$0.key] + $0.key.variants }
        let names = keys.map { Set($0.map(\.digest.hexadecimal)) }
        let events = try await engine.storage.withHistory { (history, store) throws(CacheError) in
            try history.events(of: store)
        }
        return (events ?? []).filter { event in
            if let start, event.time < start { return false }
            guard let names else { return true }
            return event.entry.map(names.contains) ?? (event.kind == .removed)
        }
    }
}
