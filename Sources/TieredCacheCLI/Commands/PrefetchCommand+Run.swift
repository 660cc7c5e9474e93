import HTTPCaching
import HTTPTypes
import TieredCache

extension PrefetchCommand {
    func run() async throws {
        let requests = try urls.map { url throws(CacheError) in try CacheRequest(url) }
        let (configuration, bytes, printsJSON) = (
            cache.configuration(origin: origin), bytes?.bytes, json
        )
        let cache = try TieredCache(configuration)
        // Or the first download to end would make room for one that waits.
        let suspend = { @Sendable in cache.suspendDownloads() }
        try await Interruption.guarding(prepare: suspend) {
            let order = PrefetchOrder(requests: requests, bytes: bytes, printsJSON: printsJSON)
            try await order.run(with: cache)
        }
    }
}

/// What `prefetch` was asked to do, apart from the parser.
struct PrefetchOrder: Sendable {
    let requests: [CacheRequest]
    let bytes: Int64?
    let printsJSON: Bool

    /// Fetches all of them, each as soon as the queue of downloads lets it.
    ///
    /// - Throws: the first failure of those that name the directory's owner; else one that counts
    ///   the URLs that failed, each of which has had its own line.
    func run(with cache: TieredCache) async throws {
        if let trouble = cache.storageTrouble {
            await cache.shutdown()
            throw trouble
        }
        let failures = await fetchAll(with: cache)
        await cache.shutdown()
        guard let first = failures.first else { return }
        try Task.checkCancellation()
        let (_, error) = first
        guard failures.count > 1 || requests.count > 1 else { throw error }
        for (request, error) in failures {
            StandardError.write("tieredcache: \(request.target.string): \(error)".asOneLine)
        }
        let count = "\(failures.count) of \(requests.count) URLs failed; the others are stored"
        throw CommandFailure(.originFailed, count)
    }

    private func fetchAll(with cache: TieredCache) async -> [(CacheRequest, CacheError)] {
        await withTaskGroup(of: (CacheRequest, CacheError)?.self) { group in
            for request in requests {
                group.addTask { await self.fetch(request, with: cache) }
            }
            return await group.reduce(into: []) { failures, failure in
                if let failure { failures.append(failure) }
            }
        }
    }

    private func fetch(
        _ request: CacheRequest,
        with cache: TieredCache
    ) async -> (CacheRequest, CacheError)? {
        let time = SystemTimeSource()
        let start = time.monotonicTime()
        do throws(CacheError) {
            let result = try await cache.prefetch(request, bytes: bytes)
            let report = GetReport(
                url: request.target.string,
                status: result.status.code,
                source: result.source.rawValue,
                bytesFromCache: result.bytesFromCache,
                bytesFromOrigin: result.bytesFromOrigin,
                elapsed: start.duration(to: time.monotonicTime())
            )
            return say(report, request)
        } catch {
            return (request, error)
        }
    }

    private func say(_ report: GetReport, _ request: CacheRequest) -> (CacheRequest, CacheError)? {
        guard printsJSON else { return nil }
        do {
            try StandardOutput.writeLine(report.json.text)
            return nil
        } catch {
            return (request, CacheError(.localStorage, error.message))
        }
    }
}
