import HTTPCaching
import Logging

/// The jobs of one cache: loads their records after a restart, and keeps one job per key.
final class DownloadCenter: Sendable {
    fileprivate struct State {
        var jobs: [DownloadID: DownloadJob] = [:]
        var byKey: [CacheKey: DownloadID] = [:]
        var order: [DownloadID] = []
        var isLoaded = false
    }

    private let responder: Responder
    private let configuration: MediaCache.Configuration
    private let state = Guarded(State())

    init(responder: Responder, configuration: MediaCache.Configuration) {
        self.responder = responder
        self.configuration = configuration
    }

    /// All jobs except removed ones, in the order of submission.
    func all() async throws(CacheError) -> [DownloadJob] {
        try await load()
        return state.withLock { state in
            state.order.compactMap { state.jobs[$0] }.filter { !$0.isForgotten }
        }
    }

    func job(_ id: DownloadID) async throws(CacheError) -> DownloadJob? {
        try await all().first { $0.id == id }
    }

    func job(for key: CacheKey) async throws(CacheError) -> DownloadJob? {
        try await all().first { $0.request.key == key }
    }

    /// The job for a request: the existing one for its key, or a new one.
    ///
    /// Does not start it.
    ///
    /// - Throws: `.notOwner` if another process runs the jobs; `.invalidURL`, and `.invalidArgument`
    ///   for a request whose response is never stored.
    func submit(_ request: CacheRequest) async throws(CacheError) -> DownloadJob {
        try check(request)
        try requireOwnership()
        try await load()
        var request = request
        request.range = nil
        let record = JobRecord(
            id: .random(),
            request: request,
            created: responder.time.wallTime(),
            secretFields: configuration.secretFields
        )
        let job = makeJob(from: record, request: request)
        let (kept, forgotten) = state.withLock { $0.insert(job, for: request.key) }
        // Released outside the lock: a job's release ends the streams of its watchers.
        withExtendedLifetime(forgotten) {}
        return kept
    }

    /// A job that is not kept on disk, and may be one of several for its key; does not start it.
    ///
    /// - Throws: as ``submit(_:)``.
    func unlisted(_ request: CacheRequest, segments: Int) throws(CacheError) -> DownloadJob {
        try check(request)
        try requireOwnership()
        var request = request
        request.range = nil
        let record = JobRecord(
            id: .random(),
            request: request,
            created: responder.time.wallTime(),
            secretFields: configuration.secretFields
        )
        return DownloadJob(
            record,
            request: request,
            responder: responder,
            maximumSegments: segments,
            isListed: false
        )
    }

    /// Throws `.invalidURL`, or `.invalidArgument` for a request whose response is never stored.
    func check(_ request: CacheRequest) throws(CacheError) {
        try request.checkURL()
        guard request.isCacheable else {
            throw CacheError(
                .invalidArgument,
                "\(request.target.redacted) cannot be a download: only a GET, or a request with "
                    + "a key of its own, is stored"
            )
        }
    }

    private func makeJob(from record: JobRecord, request: CacheRequest) -> DownloadJob {
        DownloadJob(
            record,
            request: request,
            responder: responder,
            maximumSegments: configuration.maximumSegments
        )
    }

    /// Ends all runs and all writing; jobs that ran continue after a restart.
    func stop() async {
        let jobs = state.withLock { Array($0.jobs.values) }
        await withTaskGroup { group in
            for job in jobs { group.addTask { await job.stop() } }
        }
    }

    func requireOwnership() throws(CacheError) {
        guard let store = responder.storage.disk.openStore, case .guest = store.access else {
            return
        }
        try store.requireOwner()
    }

    private func load() async throws(CacheError) {
        if state.withLock({ $0.isLoaded }) { return }
        guard let store = responder.storage.disk.openStore else { return }
        let records = try await responder.storage.writers.run { () throws(CacheError) in
            try JobStore(store).load()
        }
        var found: [(DownloadJob, CacheKey)] = []
        for record in records {
            do throws(CacheError) {
                let request = try record.request()
                found.append((makeJob(from: record, request: request), request.key))
            } catch {
                // Edited by hand, or written by a later version: the file stays.
                responder.recorder.logger.warning("job \(record.id) cannot be read: \(error)")
            }
        }
        state.withLock { state in
            guard !state.isLoaded else { return }
            state.isLoaded = true
            for (job, key) in found { _ = state.insert(job, for: key) }
        }
        for (job, _) in found { await job.loadStoredBytes() }
    }
}

extension DownloadCenter.State {
    /// Adds a job unless its key has one; a removed job is replaced.
    fileprivate mutating func insert(
        _ job: DownloadJob,
        for key: CacheKey
    ) -> (kept: DownloadJob, forgotten: [DownloadJob]) {
        if let id = byKey[key], let known = jobs[id], !known.isForgotten { return (known, []) }
        jobs[job.id] = job
        byKey[key] = job.id
        order.append(job.id)
        let forgotten = jobs.values.filter(\.isForgotten)
        for job in forgotten { jobs[job.id] = nil }
        order.removeAll { jobs[$0] == nil }
        return (job, forgotten)
    }
}
