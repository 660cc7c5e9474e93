/// A download that survives the end of the process and failures of network and origin.
///
/// Releasing the handle does not stop the job. Any number of handles may control one job, from any
/// thread. Every command is on disk when its call returns.
public struct DownloadHandle: Sendable, Identifiable {
    let job: DownloadJob

    init(_ job: DownloadJob) {
        self.job = job
    }

    /// The identifier of the job, which survives a restart.
    public var id: DownloadID { job.id }

    /// The request to fetch and store.
    public var request: CacheRequest { job.request }

    /// The current status.
    public var status: DownloadStatus { job.status }

    /// The current status and every change, at most ten times per second while bytes arrive.
    ///
    /// A slow consumer gets only the latest. Ends when the job is removed.
    public var progress: AsyncStream<DownloadStatus> { job.statuses() }

    /// Stops the download until ``resume(with:)``; received bytes stay.
    public func pause() async { await job.pause() }

    /// Continues after a pause, a failure, a cancellation or a restart; from the last byte, if the
    /// origin supports it.
    ///
    /// - Parameter request: supplies the fields that the record does not store, such as
    ///   `Authorization`; nil keeps the known fields.
    public func resume(with request: CacheRequest? = nil) async { await job.start(with: request) }

    /// Applies rules for hosts before ``resume(with:)``, as to the request that it was started with;
    /// fields of rules are not stored.
    ///
    /// Has no effect on a run.
    public func apply(_ rules: HostRules) { job.apply(rules) }

    /// Ends the download; the job stays listed as cancelled until it is resumed or acknowledged.
    ///
    /// - Parameter keepingBytes: false removes the received bytes from the cache.
    public func cancel(keepingBytes: Bool = true) async {
        await job.cancel(keepsBytes: keepingBytes)
    }

    /// Changes the priority; takes effect at once, in the queue or in transfer.
    public func setPriority(_ priority: RequestPriority) async { await job.setPriority(priority) }

    /// Acknowledges the end and removes the job; the bytes stay in the cache.
    ///
    /// Has no effect before the end.
    public func acknowledge() async { await job.acknowledge() }

    /// Ends the download if necessary and removes the job; the bytes stay in the cache.
    public func remove() async { await job.remove() }

    /// Waits for the end, also while the job is paused.
    ///
    /// - Returns: the status at the end.
    /// - Throws: the error of a failed download; `.cancelled` if it, or the waiting task, was
    ///   cancelled.
    @discardableResult
    public func wait() async throws(CacheError) -> DownloadStatus {
        for await status in job.statuses() {
            switch status.state {
            case .finished: return status
            case .failed(let problem): throw problem.error
            case .cancelled: throw CacheError(.cancelled, "the download was cancelled")
            case .queued, .running, .waitingForNetwork, .paused: continue
            }
        }
        if case .finished = job.status.state { return job.status }
        throw CacheError(.cancelled, "the download is no longer waited for")
    }
}
