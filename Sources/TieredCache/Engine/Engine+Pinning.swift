import HTTPCaching

// A pin promises that bytes are there later.
extension Engine {
    /// Pins what is held already, since only new entries are born pinned.
    ///
    /// That it cannot be done is counted and told as an event; the bytes are delivered all the same.
    func pinIfAsked(_ request: CacheRequest) async {
        guard request.isPinned, request.isCacheable, configuration.directory != nil else { return }
        let disk = disk
        await writers.run { [self] in
            do throws(CacheError) {
                _ = try disk.store().setPinned(true, request.key)
            } catch {
                didFailToStore(request, error)
            }
        }
    }
}
