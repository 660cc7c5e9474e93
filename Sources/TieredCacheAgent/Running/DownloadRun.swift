import FoundationEssentials
import HTTPCaching
import SystemPackage
import TieredCache

/// One run of a download: fetches the body, then makes the file of it.
struct DownloadRun: Sendable {
    let gid: GID
    let number: Int
    let agent: Agent

    /// Runs until the end, or until the task is cancelled; what has come stays then.
    func run() async {
        do throws(DownloadFailure) {
            guard let outcome = try await outcome() else { return }
            await agent.didEnd(gid, run: number, outcome)
        } catch {
            await agent.didEnd(gid, run: number, .failed(error))
        }
    }

    private func outcome() async throws(DownloadFailure) -> DownloadTable.Outcome? {
        guard let (record, options) = agent.order(of: gid, run: number) else { return nil }
        let place = try DownloadPath(options, uri: record.uri ?? "")
        agent.update { $0.didFindPath(gid, run: number, path: place.path.string) }
        if let delivery = record.delivery, let total = record.total,
            await agent.files.run({ FinishedFile.isThere(delivery, length: total) })
        {
            await agent.release(record.uri ?? "")
            return .complete(path: delivery.path, total: total)
        }
        let limiter = agent.limiter(of: gid, rate: options.number("max-download-limit"))
        let order = try DownloadOrder(record, options: options, limiter: limiter)
        guard try await fetch(order) else { return nil }
        return try await deliver(order.request, to: place, options: options)
    }

    // MARK: Fetching

    /// - Returns: whether all of it has come; false where the run was ended.
    private func fetch(_ order: DownloadOrder) async throws(DownloadFailure) -> Bool {
        let job: DownloadHandle
        do throws(CacheError) {
            job = try await agent.cache.downloads.startUnlisted(
                order.request,
                segments: order.segments
            )
        } catch {
            throw DownloadFailure(DownloadProblem(error))
        }
        for await status in job.progress {
            note(status)
            guard status.state.isEnd else { continue }
            if case .failed(let problem) = status.state {
                var failure = DownloadFailure(problem)
                // The engine tries again by itself, but not where an origin is silent.
                if problem.code != .timedOut { failure.tries = Int64(order.request.retries ?? 1) }
                throw failure
            }
            return status.state == .finished
        }
        // Cancelled: the last byte is on disk when this returns.
        await job.pause()
        await agent.didStop(gid, request: order.request)
        return false
    }

    private func note(_ status: DownloadStatus) {
        agent.update {
            $0.didProgress(
                gid,
                run: number,
                completed: status.bytes,
                total: status.total,
                speed: status.state == .running
                    ? Int64(status.bytesPerSecond.map { min($0, 1e15) } ?? 0) : 0
            )
        }
    }

    // MARK: The file

    private func deliver(
        _ request: CacheRequest,
        to place: DownloadPath,
        options: DownloadOptions
    ) async throws(DownloadFailure) -> DownloadTable.Outcome? {
        let body: FilePath
        do throws(CacheError) {
            guard let path = try await agent.cache.fileURL(for: request).flatMap(FilePath.init)
            else {
                throw CacheError(.integrityFailed, "the body is not what was promised")
            }
            body = path
        } catch {
            throw DownloadFailure(DownloadProblem(error))
        }
        let isOver = TaskFlag()
        let copied = await withTaskCancellationHandler {
            await agent.files.run { () -> Result<(FinishedFile, Int64?), DownloadFailure> in
                do throws(DownloadFailure) {
                    let file = try FinishedFile(at: place)
                    return .success((file, try file.copy(body) { !isOver.isRaised }))
                } catch {
                    return .failure(error)
                }
            }
        } onCancel: {
            isOver.raise()
        }
        let (file, length) = try copied.get()
        guard let length else { return nil }
        guard let path = try await name(file, options: options) else { return nil }
        await agent.release(request.target.string)
        return .complete(path: path.string, total: length)
    }

    /// Gives the file its name, which the record has before.
    private func name(
        _ file: FinishedFile,
        options: DownloadOptions
    ) async throws(DownloadFailure) -> FilePath? {
        let overwrites = options.isTrue("allow-overwrite")
        let renames = options.isTrue("auto-file-renaming")
        while true {
            let path = try await agent.files.run { () throws(DownloadFailure) in
                try file.freePath(overwrites: overwrites, renames: renames)
            }
            guard let identity = file.identity else {
                throw DownloadFailure(file: "the file cannot be looked at", code: 17)
            }
            let delivery = DownloadRecord.Delivery(
                path: path.string,
                device: identity.device,
                file: identity.file
            )
            guard try await agent.willDeliver(gid, run: number, delivery) else { return nil }
            let isNamed = try await agent.files.run { () throws(DownloadFailure) in
                try file.link(as: path, overwrites: overwrites)
            }
            if isNamed { return path }
        }
    }
}

/// Whether a task has been cancelled, for code that runs on another thread.
private final class TaskFlag: Sendable {
    private let state = Guarded(false)

    var isRaised: Bool { state.withLock { $0 } }

    func raise() { state.withLock { $0 = true } }
}
