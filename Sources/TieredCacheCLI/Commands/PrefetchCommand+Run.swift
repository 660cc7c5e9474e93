import HTTPCaching
import HTTPTypes
import TieredCache
import TieredCacheProxy

extension PrefetchCommand {
    func run() async throws {
        let requests = try urls.map { url throws(CacheError) in try CacheRequest(url) }
        let (configuration, bytes, variant, printsJSON) = (
            cache.configuration(origin: origin), bytes?.bytes, variant.choice, json
        )
        try OpenFileLimit.require()
        let cache = try MediaCache(configuration)
        // Otherwise the first download to end would start a waiting one.
        let suspend = { @Sendable in cache.transfers.suspend() }
        try await Interruption.guarding(
            hint: "go on with the same command, or 'tieredcache resume'",
            prepare: suspend
        ) {
            let order = PrefetchOrder(
                requests: requests,
                bytes: bytes,
                variant: variant,
                printsJSON: printsJSON
            )
            let guests = GuestService(cache: cache, directory: configuration.directory)
            do {
                try await order.run(with: cache)
            } catch {
                await guests.stop()
                throw error
            }
            await guests.stop()
        }
    }
}

/// The arguments of `prefetch`, independent of the parser.
struct PrefetchOrder: Sendable {
    let requests: [CacheRequest]
    let bytes: Int64?
    /// The variants to fetch of presentations with several.
    let variant: VariantChoice
    let printsJSON: Bool

    /// Fetches all URLs, each as soon as the queue of downloads starts it.
    ///
    /// - Throws: the storage error of the directory; the error of a single URL; else an error with
    ///   the number of failed URLs, after a line for each.
    func run(with cache: MediaCache) async throws {
        if let storageError = cache.storageError {
            await cache.shutdown()
            throw storageError
        }
        let screen = PrefetchScreen(cache, requests: requests, isOfHeads: bytes != nil)
        async let shown: Void = screen.show()
        let failures = await fetchAll(with: cache, screen)
        await cache.shutdown()
        await shown
        screen.conclude()
        guard let first = failures.first else { return }
        try Task.checkCancellation()
        let (_, error) = first
        guard failures.count > 1 || requests.count > 1 else { throw error }
        for (request, error) in failures {
            let line = FailureLine(url: request.target.string, message: error.description)
            StandardError.write("tieredcache: \(line.text)".asOneLine)
        }
        let count = "\(failures.count) of \(requests.count) URLs failed; the others are stored"
        throw CommandFailure(.originFailed, message: count)
    }

    private func fetchAll(
        with cache: MediaCache,
        _ screen: PrefetchScreen
    ) async -> [(CacheRequest, CacheError)] {
        await withTaskGroup(of: (CacheRequest, CacheError)?.self) { group in
            for request in requests {
                group.addTask {
                    await self.fetch(screen.watching(request), with: cache, screen: screen)
                }
            }
            return await group.reduce(into: []) { failures, failure in
                if let failure { failures.append(failure) }
            }
        }
    }

    private func fetch(
        _ request: CacheRequest,
        with cache: MediaCache,
        screen: PrefetchScreen
    ) async -> (CacheRequest, CacheError)? {
        let time = SystemTimeSource()
        let start = time.monotonicTime()
        // A prefetch of a beginning needs no job.
        let job = bytes == nil ? await cache.noteUnfinished(request) : nil
        do throws(CacheError) {
            let result = try await cache.prefetch(request, bytes: bytes)
            await job?.remove()
            let parts = try await presentation(request, with: cache)
            let report = GetReport(
                url: request.target.string,
                status: result.status.code,
                source: parts.bytesFromOrigin > 0 ? "origin" : result.source.rawValue,
                bytesFromCache: result.bytesFromCache + parts.bytesFromCache,
                bytesFromOrigin: result.bytesFromOrigin + parts.bytesFromOrigin,
                elapsed: start.duration(to: time.monotonicTime())
            )
            screen.didEnd(report)
            return say(report, for: request)
        } catch {
            await job?.didEnd(with: error)
            return (request, error)
        }
    }

    /// Fetches the resources that a fetched playlist refers to.
    private func presentation(
        _ request: CacheRequest,
        with cache: MediaCache
    ) async throws(CacheError) -> PlaylistPrefetch.Outcome {
        let prefetch = PlaylistPrefetch(cache, choice: variant)
        guard bytes == nil, try await prefetch.isPlaylist(request) else {
            return PlaylistPrefetch.Outcome()
        }
        let outcome = await prefetch.run(request)
        guard let first = outcome.failures.first else { return outcome }
        throw CacheError(
            first.error.code,
            "\(outcome.failures.count) of \(outcome.resources) parts of "
                + "\(request.target.redacted) failed, the others are stored: \(first.error.message)",
            status: first.error.status
        )
    }

    private func say(_ report: GetReport, for request: CacheRequest) -> (CacheRequest, CacheError)?
    {
        guard printsJSON else { return nil }
        do {
            try StandardOutput.writeLine(JSONLine.text(of: report))
            return nil
        } catch {
            return (request, CacheError(.localStorage, error.message))
        }
    }
}
