/// What the transfers of one operation report, for any number of consumers.
///
/// States: `open` → `over`, which stays. It is over when the operation has failed; or when it has
/// its response, no transfer that was started for it goes on, and its body starts no other one.
/// Consumers are resumed under no lock. May be used from any thread.
final class RequestReports: Sendable {
    private struct State {
        var progress: DownloadProgress?
        var untoldProgress: DownloadProgress?
        /// Notices that were told, for consumers that come late.
        var notices: [DownloadNotice] = []
        var untoldNotices: [DownloadNotice] = []
        var progressWatchers = StreamWatchers<DownloadProgress>()
        var noticeWatchers = StreamWatchers<DownloadNotice>()
        /// The number of transfers that were started for the operation and have not ended.
        var transfers = 0
        /// Whether the body may start a transfer; nil until the operation has its response.
        var mayFetch: (@Sendable () -> Bool)?
        var isOver = false

        /// - Returns: whether the caller tells progress, and whether it tells notices.
        mutating func end() -> (Bool, Bool) {
            guard !isOver else { return (false, false) }
            isOver = true
            return (progressWatchers.beginTelling(), noticeWatchers.beginTelling())
        }
    }

    /// The number of notices that a consumer gets of the time before it came.
    static let maximumNotices = 256

    private let state = Guarded(State())

    /// The number of streams that have not ended.
    var consumers: Int {
        state.withLock { $0.progressWatchers.all.count + $0.noticeWatchers.all.count }
    }

    deinit {
        // An operation that was released before its start reports nothing.
        let (progress, notices) = state.withLock {
            ($0.progressWatchers.all, $0.noticeWatchers.all)
        }
        for watcher in progress { watcher.finish() }
        for watcher in notices { watcher.finish() }
    }

    // MARK: Consumers

    /// The latest progress, then every change as far as the consumer keeps up.
    func progress() -> AsyncStream<DownloadProgress> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state -> UInt64? in
                // No consumer waits yet, so this resumes none.
                if let progress = state.progress { continuation.yield(progress) }
                return state.isOver ? nil : state.progressWatchers.add(continuation)
            }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                // Returned, so that it is released outside the lock.
                _ = self?.state.withLock { $0.progressWatchers.remove(number) }
            }
        }
    }

    /// All notices, those of before first.
    func notices() -> AsyncStream<DownloadNotice> {
        AsyncStream(bufferingPolicy: .unbounded) { continuation in
            let number = state.withLock { state -> UInt64? in
                // No consumer waits yet, so this resumes none.
                for notice in state.notices { continuation.yield(notice) }
                if state.isOver { for last in state.untoldNotices { continuation.yield(last) } }
                return state.isOver ? nil : state.noticeWatchers.add(continuation)
            }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.noticeWatchers.remove(number) }
            }
        }
    }

    // MARK: Reports

    func didProgress(_ progress: DownloadProgress) {
        let tells = state.withLock { state in
            guard !state.isOver else { return false }
            (state.progress, state.untoldProgress) = (progress, progress)
            return state.progressWatchers.beginTelling()
        }
        if tells { tellProgress() }
    }

    func didNotice(_ notice: DownloadNotice) {
        let tells = state.withLock { state in
            guard !state.isOver else { return false }
            state.untoldNotices.append(notice)
            return state.noticeWatchers.beginTelling()
        }
        if tells { tellNotices() }
    }

    private func tellProgress() {
        StreamWatchers<DownloadProgress>.tell { [self] in
            state.withLock { state in
                let untold = state.untoldProgress.take().map { [$0] } ?? []
                return state.progressWatchers.takeNews(untold, isLast: state.isOver)
            }
        }
    }

    private func tellNotices() {
        StreamWatchers<DownloadNotice>.tell { [self] in
            state.withLock { state in
                let untold = state.untoldNotices
                state.untoldNotices = []
                state.notices = (state.notices + untold).suffix(Self.maximumNotices)
                return state.noticeWatchers.takeNews(untold, isLast: state.isOver)
            }
        }
    }

    // MARK: The end

    /// A transfer of the operation; it lasts until this object is released.
    final class TransferMark: Sendable {
        private let reports: RequestReports

        fileprivate init(_ reports: RequestReports) {
            self.reports = reports
        }

        deinit {
            reports.didEndTransfer()
        }
    }

    /// Notes a transfer that is about to start, or to wait for its start.
    func beginTransfer() -> TransferMark {
        state.withLock { $0.transfers += 1 }
        return TransferMark(self)
    }

    private func didEndTransfer() {
        state.withLock { $0.transfers -= 1 }
        endIfDone()
    }

    /// The operation has its response.
    ///
    /// - Parameter mayFetch: whether its body may still start a transfer.
    func didRespond(_ mayFetch: @escaping @Sendable () -> Bool) {
        state.withLock { $0.mayFetch = mayFetch }
        endIfDone()
    }

    /// The operation has failed or was cancelled; later reports are for others.
    func didFail() { tellEnd(state.withLock { $0.end() }) }

    /// Ends the streams if nothing will be reported; call it after the body has changed.
    func endIfDone() {
        let mayFetch = state.withLock { state in
            state.isOver || state.transfers > 0 ? nil : state.mayFetch
        }
        guard let mayFetch, !mayFetch() else { return }
        // A transfer may have begun meanwhile; its end calls this again.
        tellEnd(state.withLock { $0.transfers > 0 ? (false, false) : $0.end() })
    }

    private func tellEnd(_ tells: (progress: Bool, notices: Bool)) {
        if tells.progress { tellProgress() }
        if tells.notices { tellNotices() }
    }
}

extension CacheRequest {
    /// Tells progress to the application.
    func report(_ progress: DownloadProgress) {
        onProgress?(progress)
        reports?.didProgress(progress)
    }

    /// Tells a notice to the application.
    func report(_ notice: DownloadNotice) {
        onNotice?(notice)
        reports?.didNotice(notice)
    }
}
