import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache
import TieredCacheProxy

/// The arguments of `get`, independent of the parser, and their execution.
struct GetOrder: Sendable {
    /// How often a body is fetched again because the representation has changed.
    private static let maximumRestarts = 5

    let request: CacheRequest
    private let configuration: MediaCache.Configuration
    /// The path of FILE; nil for standard output.
    private let file: String?
    private let printsJSON: Bool
    private let isQuiet: Bool
    private let time = SystemTimeSource()

    /// - Throws: `.invalidURL`.
    init(_ command: GetCommand) throws {
        request = try CacheRequest(command)
        configuration = command.cache.configuration(origin: command.origin)
        file = command.writesToStandardOutput ? nil : command.output
        printsJSON = command.json
        isQuiet = command.quiet
    }

    /// Delivers the body and reports the outcome.
    func run() async throws {
        // Before any fetch, which would be useless if the file cannot be written.
        let output = try file.map { try OutputFile($0) }
        let cache = try MediaCache(configuration)
        if let problem = cache.storingError(in: configuration.path) {
            StandardError.write("tieredcache: warning: not storing: \(problem.message)".asOneLine)
        }
        let guests = GuestService(cache: cache, directory: configuration.directory)
        do {
            try await deliver(from: cache, to: output)
        } catch {
            await guests.stop()
            await cache.shutdown()
            throw error
        }
        await guests.stop()
        await cache.shutdown()
    }

    private func deliver(from cache: MediaCache, to output: OutputFile?) async throws {
        let start = time.monotonicTime()
        let response = try await deliverAgainWhereChanged(from: cache, to: output, start: start)
        try output?.complete()
        if printsJSON {
            let elapsed = start.duration(to: time.monotonicTime())
            try say(GetReport(request: request, response: response, elapsed: elapsed))
        }
        if request.isPinned { try await requirePinned(response, in: cache) }
    }

    /// Checks that delivered bytes are pinned, if `--pin` was given.
    private func requirePinned(_ response: CacheResponse, in cache: MediaCache) async throws {
        let problem: String
        do throws(CacheError) {
            let entry = try await cache.entry(for: request)
            if let entry, entry.isPinned, entry.isComplete || request.range != nil {
                // The pinned entry is the delivered version, or an earlier one that is kept.
                guard let error = response.storageError else { return }
                problem = "an earlier version stays pinned; \(error.message)"
            } else {
                problem =
                    (response.storageError ?? cache.storageError)?.message
                    ?? (response.isStored
                        ? "the disk did not take all of it; free disk space or raise --disk-limit"
                        : "the response may not be stored")
            }
        } catch {
            problem = error.message
        }
        throw CommandFailure(
            .localFailed,
            message:
                "\(request.target.string) was delivered, but its pin cannot be kept: \(problem)"
        )
    }

    /// Delivers again if the representation changes while FILE is written; on standard output old
    /// bytes may have been written already.
    private func deliverAgainWhereChanged(
        from cache: MediaCache,
        to output: OutputFile?,
        start: MonotonicTime
    ) async throws -> CacheResponse {
        var restarts = 0
        while true {
            do {
                return try await deliverOnce(from: cache, to: output, start: start)
            } catch let error as CacheError where error.code == .representationChanged {
                guard let output, restarts < Self.maximumRestarts else { throw error }
                restarts += 1
                try output.restart()
            }
        }
    }

    private func deliverOnce(
        from cache: MediaCache,
        to output: OutputFile?,
        start: MonotonicTime
    ) async throws -> CacheResponse {
        var progress = ProgressBar(isWanted: !isQuiet, start: start)
        defer { progress.clear() }
        let job = await UnfinishedGet(request, in: cache)
        do {
            let response = try await cache.response(for: request(telling: progress))
            guard response.status.code < 400 else {
                throw CommandFailure(status: response.status, request: request)
            }
            try await deliver(response, to: output, progress: &progress)
            await job?.didFinish()
            return response
        } catch {
            await job?.didEnd(with: error)
            throw error
        }
    }

    /// The request, with notices about delays for the terminal.
    private func request(telling bar: ProgressBar) -> CacheRequest {
        var request = request
        let name = request.name
        request.onNotice = { notice in
            NoticeLine(notice, name: name).map { bar.say($0.text) }
        }
        return request
    }

    private func deliver(
        _ response: CacheResponse,
        to output: OutputFile?,
        progress: inout ProgressBar
    ) async throws {
        let total = response.range.upperBound.map { $0 - response.range.lowerBound }
        var bytes: Int64 = 0
        for try await chunk in response.body {
            try chunk.withUnsafeBytes { piece in
                try output.map { try $0.write(piece) } ?? StandardOutput.write(piece)
            }
            bytes += Int64(chunk.count)
            progress.update(
                name: request.name,
                bytes: bytes,
                total: total,
                source: response.lastBytesSource,
                now: time.monotonicTime()
            )
        }
    }

    private func say(_ report: GetReport) throws {
        guard file != nil else { return StandardError.write(try JSONLine.text(of: report)) }
        try StandardOutput.writeLine(JSONLine.text(of: report))
    }
}

extension CacheRequest {
    /// The last component of the path, for messages on a terminal.
    var name: String {
        target.path.split(separator: "/").last.map(String.init) ?? target.authority
    }
}

extension CommandFailure {
    /// The failure for a final status of 400 or more.
    init(status: HTTPResponse.Status, request: CacheRequest) {
        self.init(
            .originFailed,
            message: "\(request.target.string) answered with status \(status.code)"
        )
    }
}

extension GetReport {
    init(request: CacheRequest, response: CacheResponse, elapsed: Duration) {
        self.init(
            url: request.target.string,
            status: response.status.code,
            source: response.source.rawValue,
            bytesFromCache: response.bytesFromCache,
            bytesFromOrigin: response.bytesFromOrigin,
            elapsed: elapsed
        )
    }
}
