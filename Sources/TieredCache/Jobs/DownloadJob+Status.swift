// The status of a job, for those that watch it.
extension DownloadJob {
    private static let reportInterval = Duration.milliseconds(100)

    /// The current status at once, then every change, at most ten times per second while bytes
    /// arrive; ends with the job.
    func statuses() -> AsyncStream<DownloadStatus> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state -> UInt64? in
                // No consumer waits yet, so this resumes none.
                continuation.yield(state.status)
                return state.machine.isForgotten ? nil : state.watchers.add(continuation)
            }
            guard let number else { return continuation.finish() }
            continuation.onTermination = { [weak self] _ in
                // Returned, so that it is released outside the lock.
                _ = self?.state.withLock { $0.watchers.remove(number) }
            }
        }
    }

    /// Reports at most ten times per second, and always the latest status.
    func report(isForced: Bool = false) {
        let now = responder.time.monotonicTime()
        let (tells, isLater) = state.withLock { state -> (Bool, Bool) in
            guard isForced || state.lastReport.duration(to: now) >= Self.reportInterval else {
                defer { state.hasLateReport = true }
                return (false, !state.hasLateReport)
            }
            state.lastReport = now
            return (state.watchers.beginTelling(), false)
        }
        if tells { tellWatchers() }
        guard isLater else { return }
        Task { [weak self, time = responder.time] in
            do {
                try await time.sleep(for: Self.reportInterval)
            } catch {
                // No code cancels this task; the report is made in any case.
            }
            self?.state.withLock { $0.hasLateReport = false }
            self?.report(isForced: true)
        }
    }

    /// Tells the watchers the status, one thread at a time and so in order.
    private func tellWatchers() {
        StreamWatchers<DownloadStatus>.tell { [self] in
            state.withLock { $0.watchers.takeNews([$0.status], isLast: $0.machine.isForgotten) }
        }
    }
}
