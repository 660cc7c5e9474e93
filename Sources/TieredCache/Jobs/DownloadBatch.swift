/// Several downloads with common progress and control.
public struct DownloadBatch: Sendable {
    /// The state of all downloads of a batch.
    public struct Status: Hashable, Sendable {
        /// The number of downloads.
        public var downloads = 0
        /// The number of downloads with all their bytes.
        public var finished = 0
        /// The number of downloads that failed or were cancelled.
        public var failed = 0
        /// The downloads that failed, in the order of the requests; cancelled ones have no error.
        public var failures: [Failure] = []
        /// The number of stored bytes.
        public var bytes: Int64 = 0
        /// The total length in bytes; nil while the length of any download is unknown.
        public var total: Int64?
        /// The source of the latest bytes: ``ByteSource/network`` if any download receives from it;
        /// nil before the first byte.
        public var source: ByteSource?
        /// The sum of the rates of running downloads, in bytes per second.
        public var bytesPerSecond: Double?

        /// Whether all downloads have ended.
        public var isEnd: Bool { finished + failed == downloads }

        /// The time left at the current rate; nil if length or rate are unknown.
        public var timeLeft: Duration? {
            DownloadProgress(
                offset: bytes,
                completeLength: total,
                bytesReceived: bytes,
                bytesPerSecond: bytesPerSecond
            ).timeLeft
        }

        init(_ parts: some Sequence<DownloadStatus>) {
            var sum: Int64? = 0
            for part in parts {
                downloads += 1
                if part.state == .finished {
                    finished += 1
                } else if part.state.isEnd {
                    failed += 1
                }
                if case .failed(let problem) = part.state {
                    failures.append(Failure(id: part.id, url: part.url, problem: problem))
                }
                bytes += part.bytes
                if part.state == .running || source == nil, source != .network {
                    source = part.source ?? source
                }
                sum = part.total.flatMap { total in sum.flatMap { $0.sum(total) } }
                guard part.state == .running, let rate = part.bytesPerSecond else { continue }
                bytesPerSecond = (bytesPerSecond ?? 0) + rate
            }
            total = sum
        }
    }

    /// A download of a batch that failed.
    public struct Failure: Hashable, Sendable {
        /// The identifier of the job; ``Downloads/find(_:)`` finds it.
        public let id: DownloadID
        /// The URL of the request.
        public let url: String
        /// Why it failed; ``DownloadProblem/error`` can be thrown.
        public let problem: DownloadProblem
    }

    /// The downloads, in the order of the requests.
    public let downloads: [DownloadHandle]

    /// Creates a batch of existing downloads.
    public init(_ downloads: [DownloadHandle]) {
        self.downloads = downloads
    }

    /// The current status.
    public var status: Status { Status(downloads.map(\.status)) }

    /// The status now and at every change of any of them; ends when all have ended.
    public var progress: AsyncStream<Status> {
        let downloads = downloads
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            continuation.yield(Status(downloads.map(\.status)))
            let task = Task {
                let (changes, changed) = AsyncStream.makeStream(
                    of: Void.self,
                    bufferingPolicy: .bufferingNewest(1)
                )
                // One task reads and yields the status, so that none arrives after a later one.
                async let told: Void = {
                    for await _ in changes { continuation.yield(Status(downloads.map(\.status))) }
                }()
                await withTaskGroup { group in
                    for download in downloads {
                        group.addTask {
                            for await status in download.progress {
                                changed.yield()
                                if status.state.isEnd { return }
                            }
                        }
                    }
                }
                changed.finish()
                await told
                continuation.yield(Status(downloads.map(\.status)))
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Pauses all downloads.
    public func pause() async { await forEach { await $0.pause() } }

    /// Resumes all downloads that have not finished.
    public func resume() async { await forEach { await $0.resume() } }

    /// Cancels all downloads that have not finished.
    ///
    /// - Parameter keepingBytes: false removes the received bytes from the cache.
    public func cancel(keepingBytes: Bool = true) async {
        await forEach { await $0.cancel(keepingBytes: keepingBytes) }
    }

    /// Acknowledges all downloads that have ended.
    public func acknowledge() async { await forEach { await $0.acknowledge() } }

    /// Ends and removes all jobs; the bytes stay in the cache.
    public func remove() async { await forEach { await $0.remove() } }

    /// Waits until all downloads have ended, successfully or not.
    ///
    /// - Returns: the status at the end, or at the cancellation of the waiting task.
    @discardableResult
    public func wait() async -> Status {
        for await status in progress where status.isEnd { return status }
        return status
    }

    private func forEach(_ order: @escaping @Sendable (DownloadHandle) async -> Void) async {
        await withTaskGroup { group in
            for download in downloads { group.addTask { await order(download) } }
        }
    }
}

extension Int64 {
    /// The sum; nil on overflow, as an origin may announce any length.
    fileprivate func sum(_ other: Int64) -> Int64? {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? nil : sum
    }
}
