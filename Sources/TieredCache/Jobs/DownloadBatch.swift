/// Several downloads as one: one order for all, one progress.
public struct DownloadBatch: Sendable {
    /// How the downloads of a batch are doing together.
    public struct Status: Hashable, Sendable {
        /// How many there are.
        public var downloads = 0
        /// How many have all their bytes.
        public var finished = 0
        /// How many gave up or were cancelled.
        public var failed = 0
        /// Bytes stored.
        public var bytes: Int64 = 0
        /// Bytes in all; nil while one of them is not known.
        public var total: Int64?
        /// Where bytes came from of late: ``ByteSource/network`` if any of them did; nil where none
        /// has come.
        public var source: ByteSource?
        /// Bytes per second of all that run.
        public var bytesPerSecond: Double?

        /// Whether nothing is left to wait for.
        public var isEnd: Bool { finished + failed == downloads }

        /// The time left at the present rate; nil where length or rate are unknown.
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

    /// The downloads, in the order in which they were asked for.
    public let downloads: [DownloadHandle]

    /// Makes a batch of downloads that there are.
    public init(_ downloads: [DownloadHandle]) {
        self.downloads = downloads
    }

    /// How they are doing at this moment.
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
                // One task looks and tells, so that no status comes after a later one.
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

    /// Pauses all.
    public func pause() async { await forEach { await $0.pause() } }

    /// Resumes all that have not finished.
    public func resume() async { await forEach { await $0.resume() } }

    /// Cancels all that have not finished.
    ///
    /// - Parameter keepingBytes: false removes what arrived from the cache.
    public func cancel(keepingBytes: Bool = true) async {
        await forEach { await $0.cancel(keepingBytes: keepingBytes) }
    }

    /// Acknowledges all that have ended.
    public func acknowledge() async { await forEach { await $0.acknowledge() } }

    /// Ends all and forgets them; the bytes stay in the cache.
    public func remove() async { await forEach { await $0.remove() } }

    /// Waits until all have ended, however they did.
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
    /// The sum; nil where no number holds it, as origins may say what lengths they like.
    fileprivate func sum(_ other: Int64) -> Int64? {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? nil : sum
    }
}
