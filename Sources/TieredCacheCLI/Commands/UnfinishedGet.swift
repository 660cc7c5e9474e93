import HTTPCaching
import TieredCache

/// The job of a `get` that may have to fetch bytes, so that it can be resumed if it ends early.
///
/// Stored before the request is sent, so that all received bytes belong to a job.
struct UnfinishedGet: Sendable {
    private let job: DownloadHandle

    /// - Returns: nil if nothing has to be fetched, or nothing can be stored.
    init?(_ request: CacheRequest, in cache: MediaCache) async {
        guard request.policy != .cacheOnly, request.range == nil, await !cache.contains(request),
            let job = await cache.noteUnfinished(request)
        else { return nil }
        self.job = job
    }

    /// Removes the job: all bytes are stored.
    func didFinish() async { await job.remove() }

    /// Keeps the job after an interruption; any other error is recorded as its failure.
    func didEnd(with error: any Error) async { await job.didEnd(with: error) }
}

extension DownloadHandle {
    /// Records the outcome of a run outside the job.
    func didEnd(with error: any Error) async {
        if Task.isCancelled { return }
        guard let error = error as? CacheError else { return await remove() }
        guard error.code != .cancelled, error.code != .shutDown else { return }
        await noteFailure(error)
    }
}
