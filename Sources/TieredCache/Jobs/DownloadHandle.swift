/// A download that goes on whatever happens to the process, the network or the origin.
///
/// The handle may be dropped; the job goes on. Any number of handles may speak for one job, and
/// any thread may use them. Every order is on disk when its call returns.
public struct DownloadHandle: Sendable, Identifiable {
    let job: DownloadJob

    init(_ job: DownloadJob) {
        self.job = job
    }

    /// The job's identifier, which survives a restart.
    public var id: DownloadID { job.id }

    /// What is fetched and stored.
    public var request: CacheRequest { job.request }

    /// How it is doing at this moment.
    public var status: DownloadStatus { job.status }

    /// The status now and at every change, at most ten times a second while bytes come.
    ///
    /// A consumer that is slow gets the newest. Ends when the job is forgotten.
    public var progress: AsyncStream<DownloadStatus> { job.statuses() }

    /// Stops, keeping what arrived, until ``resume(with:)``.
    public func pause() async { await job.pause() }

    /// Goes on after a pause, a failure, a cancel or a restart; where the bytes stopped, if the
    /// origin allows it.
    ///
    /// - Parameter request: brings the fields that were not written down, such as `Authorization`;
    ///   nil for those that there are.
    public func resume(with request: CacheRequest? = nil) async { await job.start(with: request) }

    /// Ends the download; it is remembered as cancelled until it is resumed or acknowledged.
    ///
    /// - Parameter keepingBytes: false removes what arrived from the cache.
    public func cancel(keepingBytes: Bool = true) async {
        await job.cancel(keepsBytes: keepingBytes)
    }

    /// Makes it more or less urgent; takes effect at once, waiting or running.
    public func setPriority(_ priority: RequestPriority) async { await job.setPriority(priority) }

    /// Takes note of the end, so that the job is forgotten; the bytes stay in the cache.
    ///
    /// Changes nothing before the end.
    public func acknowledge() async { await job.acknowledge() }

    /// Ends the download if need be and forgets the job; the bytes stay in the cache.
    public func remove() async { await job.remove() }

    /// Waits for the end; a paused job is waited for as well.
    ///
    /// - Returns: the status at the end.
    /// - Throws: why it gave up; `.cancelled` if it, or the waiting task, was cancelled.
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
