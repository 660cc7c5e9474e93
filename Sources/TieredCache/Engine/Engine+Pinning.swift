import HTTPCaching

// A pin promises that bytes are there later.
extension Engine {
    /// Pins what answers a request that asks for it, since only new entries are born pinned, and what is
    /// stored under its key by then.
    ///
    /// That it cannot be done is counted and told as an event; the bytes are delivered all the same.
    ///
    /// - Parameters:
    ///   - entry: what answers; nil where the answer went past the disk. What is stored stays then, and
    ///     is what the pin is for.
    ///   - request: what may ask for a pin.
    /// - Returns: why it cannot be pinned.
    @discardableResult
    func keepPin(_ entry: DiskEntry?, _ request: CacheRequest) async -> CacheError? {
        guard request.isPinned, request.isCacheable, storage.hasDirectory else { return nil }
        do throws(CacheError) {
            try await storage.pin(entry, request.key)
            return nil
        } catch {
            recorder.didFailToStore(request.key, request.target, error)
            return error
        }
    }
}
