import TieredCache

extension RemoveCommand {
    func run() async throws {
        let requests = try urls.map { url throws(CacheError) in try CacheRequest(url) }
        try await cache.withCacheToChange { cache in
            for request in requests { try await cache.remove(request) }
        }
    }
}

extension ClearCommand {
    func run() async throws {
        try await cache.withCacheToChange { try await $0.removeAll() }
    }
}

extension TrimCommand {
    func run() async throws {
        let bytes = size.bytes
        let (left, entries) = try await cache.withCacheToChange { cache in
            (try await cache.trim(to: bytes), try await cache.usage().entries)
        }
        guard left > bytes, entries > 0 else { return }
        let size = ByteCountFormat.format(left)
        StandardError.write("tieredcache: \(size) are left: pinned entries and those in use")
    }
}

extension CacheOptions {
    /// As ``withCache(_:)``, for commands that a guest in the directory cannot carry out.
    ///
    /// - Parameter body: what is done with the cache.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws; ``CommandFailure`` with ``ExitStatus/localFailed`` where
    ///   another process owns the directory.
    fileprivate func withCacheToChange<Result: Sendable>(
        _ body: @escaping @Sendable (MediaCache) async throws -> Result
    ) async throws -> Result {
        do {
            return try await withCache(body)
        } catch let error as CacheError where error.code == .notOwner {
            throw CommandFailure(.localFailed, error.message)
        }
    }
}
