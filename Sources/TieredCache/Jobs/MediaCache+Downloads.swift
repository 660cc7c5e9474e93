extension MediaCache {
    /// Downloads that outlive the process.
    public var downloads: Downloads { Downloads(center: center) }
}

/// The downloads of a cache that outlive the process, each a job with a record beside the cache.
public struct Downloads: Sendable {
    let center: DownloadCenter

    /// Fetches and stores a whole body, and continues across failures until the body is complete.
    ///
    /// The record of the job is on disk when this returns; ``all()`` returns the job after a
    /// restart. There is one job per key: a second call joins the first.
    ///
    /// - Parameter request: the request to download; its range is ignored.
    /// - Returns: the handle of the job.
    /// - Throws: `.notOwner` if another process owns the directory; `.invalidArgument` if the
    ///   response is never stored; `.localStorage` if existing jobs cannot be read; `.invalidURL`.
    public func start(_ request: CacheRequest) async throws(CacheError) -> DownloadHandle {
        let job = try await center.submit(request)
        await job.start(with: request)
        return DownloadHandle(job)
    }

    /// Fetches many as one; see ``start(_:)-(CacheRequest)``.
    ///
    /// Starts none if any of the requests cannot be a download.
    public func start(_ requests: [CacheRequest]) async throws(CacheError) -> DownloadBatch {
        for request in requests { try center.check(request) }
        var handles: [DownloadHandle] = []
        for request in requests { handles.append(try await start(request)) }
        return DownloadBatch(handles)
    }

    /// Every job that was not acknowledged yet, in the order of submission, also those of earlier
    /// processes.
    ///
    /// Starts nothing.
    ///
    /// - Returns: the handles.
    /// - Throws: `.localStorage` where the records cannot be listed.
    public func all() async throws(CacheError) -> [DownloadHandle] {
        try await center.all().map(DownloadHandle.init)
    }

    /// The job with an identifier; nil if there is none or it was acknowledged.
    public func find(_ id: DownloadID) async throws(CacheError) -> DownloadHandle? {
        try await center.job(id).map(DownloadHandle.init)
    }

    /// Resumes the jobs that were running or waiting when their process ended.
    ///
    /// Jobs that were paused or cancelled, or that failed permanently, are not resumed. Jobs
    /// without their credentials (``DownloadStatus/lacksCredentials``) wait for
    /// ``DownloadHandle/resume(with:)``, because an origin would refuse them.
    ///
    /// - Parameter rules: the rules for hosts, which have the fields that came from them when the
    ///   jobs were started; hosts that they exclude are left alone. Nil changes nothing.
    /// - Returns: the handles of those that go on.
    /// - Throws: `.localStorage`; `.notOwner` where another process runs them.
    @discardableResult
    public func resumeAll(by rules: HostRules? = nil) async throws(CacheError) -> DownloadBatch {
        var jobs = try await center.all()
        if let rules {
            jobs.removeAll { rules.excludes($0.request.target) }
            for job in jobs { job.apply(rules) }
        }
        jobs.removeAll { !$0.status.state.isMeantToContinue || $0.status.lacksCredentials }
        guard !jobs.isEmpty else { return DownloadBatch([]) }
        try center.requireOwnership()
        for job in jobs { await job.start() }
        return DownloadBatch(jobs.map(DownloadHandle.init))
    }

    /// Runs a job of which the caller keeps the record: it is in no list, survives nothing, and may
    /// be one of several for its key, which share what is fetched.
    ///
    /// - Parameters:
    ///   - request: the request to download; its range is ignored.
    ///   - segments: how many requests for parts of a large body there are at once.
    /// - Returns: the handle; the caller stops the job before it closes the cache.
    /// - Throws: as ``start(_:)-(CacheRequest)``.
    package func startUnlisted(
        _ request: CacheRequest,
        segments: Int
    ) async throws(CacheError) -> DownloadHandle {
        let job = try center.unlisted(request, segments: segments)
        await job.start()
        return DownloadHandle(job)
    }
}

extension MediaCache {
    /// Writes a job for a request that the caller carries out itself, so that the bytes are not
    /// forgotten if the process dies.
    ///
    /// ``DownloadHandle/remove()`` takes it back when the request has succeeded.
    ///
    /// - Parameter request: what is being fetched.
    /// - Returns: the job, or the one that is there already; nil where none is kept.
    package func noteUnfinished(_ request: CacheRequest) async -> DownloadHandle? {
        do throws(CacheError) {
            guard request.isCacheable, request.range == nil,
                engine.storage.disk.openStore?.access.canWrite == true
            else { return nil }
            let job = try await center.submit(request)
            await job.note()
            return DownloadHandle(job)
        } catch {
            engine.recorder.didFailToStore(request.key, target: request.target, error: error)
            return nil
        }
    }
}

extension MediaCache {
    /// Takes other limits of bandwidth in the place of the configuration's, from the next bytes on.
    package func setBandwidth(_ limits: BandwidthLimits) { engine.origins.bandwidth.set(limits) }
}

extension DownloadHandle {
    /// The run that ``MediaCache/noteUnfinished(_:)`` stands for has given up.
    package func noteFailure(_ error: CacheError) async {
        guard error.isWithoutResponse else {
            // The next attempt would fail for the same reason.
            return await job.remove()
        }
        await job.noteFailure(error)
    }
}

extension MediaCache {
    /// The number of the process that owns the directory in place of this one; nil where none does,
    /// or where it has not said so.
    package var owningProcess: Int32? {
        engine.storage.disk.openStore?.access.owner?.process
    }

    /// Why this process cannot run the jobs: another one owns the directory; nil if it can.
    package var ownerError: CacheError? {
        guard let store = engine.storage.disk.openStore, !store.access.canWrite else { return nil }
        do throws(CacheError) {
            try store.requireOwner()
            return nil
        } catch {
            return error
        }
    }
}
