import HTTPCaching
import TieredCache

/// The record of a `get` that may have bytes to fetch, so that they are not forgotten if it ends
/// early.
///
/// Written before the request goes out, so that whatever arrives is on record.
struct UnfinishedGet: Sendable {
    private let job: DownloadHandle

    /// - Returns: nil where nothing needs to be fetched, or nothing of it can be kept.
    init?(_ request: CacheRequest, in cache: MediaCache) async {
        guard request.policy != .cacheOnly, request.range == nil, await !cache.contains(request),
            let job = await cache.noteUnfinished(request)
        else { return nil }
        self.job = job
    }

    /// All of it is there.
    func didFinish() async { await job.remove() }

    /// An interruption leaves a job that was meant to go on; anything else is why it does not.
    func didEnd(with error: any Error) async { await job.didEnd(with: error) }
}

extension DownloadHandle {
    /// What somebody else's run has come to.
    func didEnd(with error: any Error) async {
        if Task.isCancelled { return }
        guard let error = error as? CacheError else { return await remove() }
        guard error.code != .cancelled, error.code != .shutDown else { return }
        await noteFailure(error)
    }
}
