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
        guard request.isPinned, request.isCacheable, configuration.directory != nil else {
            return nil
        }
        let disk = disk
        return await writers.run { [self] in
            do throws(CacheError) {
                // Of another flight, it may have no name yet.
                if let entry, !entry.isPinned { try entry.setPinned(true) }
                _ = try disk.store().setPinned(true, request.key)
                return nil
            } catch {
                recorder.didFailToStore(request.key, request.target, error)
                return error
            }
        }
    }
}
