package import TieredCache

// Which downloads run, and what becomes of those that did.
extension DownloadTable {
    /// Starts those whose turn it is.
    package mutating func fillSlots(now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        guard !isClosing, active.count < maximumActive else { return [] }
        for gid in order where active.count < maximumActive {
            guard var download = live[gid], isReady(download, now: now) else { continue }
            lastRun += 1
            download.run = lastRun
            download.since = now
            download.notBefore = nil
            live[gid] = download
            active.insert(gid)
            actions += [notification(.start, download.record), .start(gid, run: lastRun)]
        }
        return actions
    }

    /// How long one runs before others that wait get its place.
    static let slice = Duration.seconds(60)

    /// Lets those that have run for a slice give way, where others wait.
    ///
    /// One of forty gigabytes must not keep one of four megabytes waiting.
    package mutating func shareSlots(now: MonotonicTime) -> [Action] {
        let ready = order.count { gid in live[gid].map { isReady($0, now: now) } ?? false }
        let worn = activeOnes.filter { $0.since.duration(to: now) >= Self.slice }
            .sorted { $0.since < $1.since }
        var actions: [Action] = []
        for var download in worn.prefix(ready) {
            guard let run = download.run else { continue }
            let gid = download.record.gid
            end(&download)
            actions.append(.stop(gid, run: run))
            download.record.rank = nextRank()
            live[gid] = download
            order.removeAll { $0 == gid }
            order.append(gid)
            actions.append(.save(download.record))
        }
        return actions + fillSlots(now: now)
    }

    /// Takes the progress of a run.
    package mutating func didProgress(
        _ gid: GID,
        run: Int,
        completed: Int64,
        total: Int64?,
        speed: Int64
    ) {
        guard live[gid]?.run == run else { return }
        live[gid]?.record.completed = completed
        if let total { live[gid]?.record.total = total }
        live[gid]?.speed = speed
    }

    /// Takes what is stored of one whose run was ended; another run knows better.
    package mutating func didStop(_ gid: GID, stored: Int64, total: Int64?) -> [Action] {
        guard var download = live[gid], download.run == nil else { return [] }
        download.record.completed = stored
        download.record.total = total ?? download.record.total
        live[gid] = download
        return [.save(download.record)]
    }

    /// Learns what an earlier process has stored of one; what has come since is known better.
    mutating func didFind(_ gid: GID, stored: Int64, total: Int64?, path: String) {
        guard var download = live[gid], download.record.completed == 0 else { return }
        download.record.completed = stored
        download.record.total = download.record.total ?? total
        if download.record.path.isEmpty { download.record.path = path }
        live[gid] = download
    }

    /// Learns where the file of a run will be.
    package mutating func didFindPath(_ gid: GID, run: Int, path: String) {
        guard live[gid]?.run == run else { return }
        live[gid]?.record.path = path
    }

    /// A file of the body has been made, and gets its name next.
    ///
    /// - Returns: what is to be done before; nil where the run is over.
    mutating func willDeliver(
        _ gid: GID,
        run: Int,
        _ delivery: DownloadRecord.Delivery
    ) -> [Action]? {
        guard var download = live[gid], download.run == run else { return nil }
        download.record.delivery = delivery
        download.record.path = delivery.path
        live[gid] = download
        return [.save(download.record)]
    }

    /// How a run ended.
    package enum Outcome: Hashable, Sendable {
        case complete(path: String, total: Int64)
        case failed(DownloadFailure)
    }

    /// A run has ended by itself.
    package mutating func didEnd(
        _ gid: GID,
        run: Int,
        _ outcome: Outcome,
        now: MonotonicTime,
        date: Int64
    ) -> [Action] {
        guard let download = live[gid], download.run == run else { return [] }
        var record = download.record
        switch outcome {
        case .complete(let path, let total):
            (record.state, record.errorCode, record.errorMessage) = (.complete, 0, "")
            (record.path, record.total, record.completed) = (path, total, total)
            record.delivery = nil
            return stop(record, now: now, date: date) + fillSlots(now: now)
        case .failed(let failure):
            return didFail(download, failure, now: now, date: date)
        }
    }

    mutating func didFail(
        _ failing: Live,
        _ failure: DownloadFailure,
        now: MonotonicTime,
        date: Int64
    ) -> [Action] {
        var download = failing
        let effective = download.record.options.over(options)
        download.record.tries += failure.tries
        let left = download.record.triesLeft(of: effective.number("max-tries"))
        if failure.isTransient, left > 0 {
            let wait = Duration.seconds(effective.number("retry-wait"))
            download.notBefore = now.advanced(by: max(wait, .seconds(1)))
        } else if failure.isOfURI, download.record.failed + 1 < download.record.uris.count {
            download.record.failed += 1
            (download.record.tries, download.record.completed) = (0, 0)
            download.record.total = nil
        } else {
            var record = download.record
            record.state = .error
            (record.errorCode, record.errorMessage) = (failure.code, failure.message)
            return stop(record, now: now, date: date) + fillSlots(now: now)
        }
        end(&download)
        live[download.record.gid] = download
        return [.save(download.record)] + fillSlots(now: now)
    }

    /// Ends all runs, which go on in the next process: the agent is about to leave.
    package mutating func close() -> [Action] {
        isClosing = true
        var actions: [Action] = []
        for var download in activeOnes {
            guard let run = download.run else { continue }
            actions += [.stop(download.record.gid, run: run), .save(download.record)]
            end(&download)
            live[download.record.gid] = download
        }
        return actions
    }
}
