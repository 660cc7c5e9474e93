import HTTPCaching
import TieredCache
import TieredCacheAgent
import TieredCacheProxy

extension DownloadsCommand {
    func run() async throws {
        if let agent = try await agent() {
            for download in try AgentDownload.all(of: agent) {
                try StandardOutput.writeLine(json ? JSONLine.text(of: download) : download.line)
            }
        }
        let (downloads, owner) = try await cache.withCache { cache in
            (try await cache.downloads.all().map(\.status), cache.owningProcess)
        }
        for download in downloads where download.state != .finished {
            let report = DownloadReport(download, owner: owner)
            try StandardOutput.writeLine(json ? JSONLine.text(of: report) : report.line)
        }
    }
}

extension DownloadsCommand {
    private func agent() async throws -> AgentClient? {
        do {
            return try await AgentPlace(options: cache, socket: socket).ifKnown()
        } catch let failure as CommandFailure where failure.status == .notOwner {
            // It rests while another process, as `serve`, has the directory.
            StandardError.write("tieredcache: not listed, what the agent has: \(failure.message)")
            return nil
        }
    }
}

extension PauseCommand {
    func run() async throws {
        let urls = try await AgentOrder(cache, socket: socket).rest(of: urls, "aria2.pause")
        guard !urls.isEmpty else { return }
        try await cache.withCache { cache in
            let downloads = try await cache.unfinished(urls)
            try cache.requireOwnership()
            for download in downloads { await download.pause() }
        }
    }
}

extension CancelCommand {
    func run() async throws {
        let drop = drop
        let urls = try await AgentOrder(cache, socket: socket).rest(of: urls, "aria2.remove")
        guard !urls.isEmpty else { return }
        try await cache.withCache { cache in
            let downloads = try await cache.unfinished(urls)
            try cache.requireOwnership()
            for download in downloads {
                await download.cancel(keepingBytes: !drop)
                // Without the bytes the job is of no use.
                if drop { await download.remove() }
            }
        }
    }
}

extension ResumeCommand {
    func run() async throws {
        let agents = try AgentOrder(cache, socket: socket)
        let rest = try await agents.rest(of: urls, "aria2.unpause")
        if urls.isEmpty {
            // What an agent has goes on in it; it owns the directory, so that there is no more.
            if try await agents.resumeAll() { return }
        } else if rest.isEmpty {
            return
        }
        let urls = rest
        let order = ResumeOrder(urls: urls, printsJSON: json, isQuiet: quiet)
        let configuration = cache.configuration(origin: origin)
        try OpenFileLimit.require()
        let cache = try MediaCache(configuration)
        // Otherwise the first download to end would start a waiting one.
        let suspend = { @Sendable in cache.transfers.suspend() }
        try await Interruption.guarding(
            hint: "go on with 'tieredcache resume'",
            prepare: suspend
        ) {
            let guests = GuestService(cache: cache, directory: configuration.directory)
            do {
                try await order.run(with: cache)
            } catch {
                await guests.stop()
                await cache.shutdown()
                throw error
            }
            await guests.stop()
            await cache.shutdown()
        }
    }
}

/// The arguments of `resume`, independent of the parser.
struct ResumeOrder: Sendable {
    let urls: [String]
    let printsJSON: Bool
    let isQuiet: Bool

    func run(with cache: MediaCache) async throws {
        if let storageError = cache.storageError { throw storageError }
        try cache.requireOwnership()
        let downloads = try await start(in: cache)
        await show(downloads)
        try Task.checkCancellation()
        try await finish(downloads)
    }

    private func start(in cache: MediaCache) async throws -> [DownloadHandle] {
        guard urls.isEmpty else {
            let downloads = try await cache.unfinished(urls)
            for (url, download) in zip(urls, downloads) {
                // Userinfo is never stored; it is taken from the URL again.
                let request = try CacheRequest(url)
                await download.resume(with: request.fields.isEmpty ? nil : request)
            }
            return downloads
        }
        let downloads = try await cache.downloads.all().filter {
            $0.status.state.isMeantToContinue || $0.status.state == .paused
        }
        for download in downloads { await download.resume() }
        return downloads
    }

    /// Shows one line for all downloads, until all have ended.
    private func show(_ downloads: [DownloadHandle]) async {
        let batch = DownloadBatch(downloads)
        let time = SystemTimeSource()
        var bar = ProgressBar(isWanted: !isQuiet, start: time.monotonicTime())
        defer { bar.clear() }
        for await status in batch.progress {
            let name =
                status.downloads == 1
                ? "1 download" : "\(status.finished) of \(status.downloads) downloads"
            bar.update(
                name: name,
                bytes: status.bytes,
                total: status.total,
                source: status.source,
                now: time.monotonicTime()
            )
        }
    }

    /// Writes a line to the terminal, after the bar was removed.
    private func sayFinished(_ count: Int) {
        ProgressBar(isWanted: true, start: SystemTimeSource().monotonicTime())
            .say(count == 1 ? "1 download finished" : "\(count) downloads finished")
    }

    /// Reports the outcome of each download, and removes the jobs that have finished.
    private func finish(_ downloads: [DownloadHandle]) async throws {
        var failures: [String] = []
        for download in downloads {
            let report = DownloadReport(download.status)
            if printsJSON { try StandardOutput.writeLine(JSONLine.text(of: report)) }
            guard download.status.state != .finished else {
                await download.acknowledge()
                continue
            }
            failures.append(
                FailureLine(url: report.url, message: report.error ?? report.state).text
            )
        }
        let finished = downloads.count - failures.count
        if finished > 0, !isQuiet { sayFinished(finished) }
        guard let first = failures.first else { return }
        guard failures.count > 1 else { throw CommandFailure(.originFailed, message: first) }
        for failure in failures { StandardError.write("tieredcache: \(failure)".asOneLine) }
        throw CommandFailure(
            .originFailed,
            message:
                "\(failures.count) of \(downloads.count) downloads failed; the others are stored"
        )
    }
}

extension MediaCache {
    /// The unfinished downloads of these URLs.
    ///
    /// - Throws: ``CommandFailure`` for the first URL without one.
    fileprivate func unfinished(_ urls: [String]) async throws -> [DownloadHandle] {
        let all = try await downloads.all().filter { $0.status.state != .finished }
        return try urls.map { url in
            let key = try CacheRequest(url).key
            guard let download = all.first(where: { $0.request.key == key }) else {
                let shown = try CacheRequest(url).target.string
                throw CommandFailure(.notCached, message: "\(shown) has no unfinished download")
            }
            return download
        }
    }

    /// - Throws: `.notOwner` if another process owns the directory and so runs its downloads.
    fileprivate func requireOwnership() throws(CacheError) {
        guard let owner = ownerError else { return }
        throw owner
    }
}
