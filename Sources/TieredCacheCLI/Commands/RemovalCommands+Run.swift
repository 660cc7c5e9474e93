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
    /// The same as ``withCache(_:)``, for commands that need ownership of the directory.
    ///
    /// - Parameter body: uses the cache.
    /// - Returns: the result of `body`.
    /// - Throws: the errors of `body`; ``CommandFailure`` with ``ExitStatus/localFailed`` if
    ///   another process owns the directory.
    fileprivate func withCacheToChange<Result: Sendable>(
        _ body: @escaping @Sendable (MediaCache) async throws -> Result
    ) async throws -> Result {
        do {
            return try await withCache(body)
        } catch let error as CacheError where error.code == .notOwner {
            throw CommandFailure(.localFailed, message: error.message)
        }
    }
}
