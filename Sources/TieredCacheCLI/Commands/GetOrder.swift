import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

/// What `get` was asked to do, apart from the parser, and how it is done.
struct GetOrder: Sendable {
    /// How often a body starts again because it changed under way.
    private static let maximumRestarts = 5

    let request: CacheRequest
    private let configuration: MediaCache.Configuration
    /// Nil for standard output.
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

    /// Delivers the body and says how it went.
    func run() async throws {
        // Before a byte is fetched: where a file cannot be written there is no reason to.
        let output = try file.map { try OutputFile($0) }
        let cache = try MediaCache(configuration)
        if let problem = cache.storageError {
            StandardError.write("tieredcache: warning: not storing: \(problem.message)".asOneLine)
        }
        do {
            try await deliver(from: cache, to: output)
        } catch {
            await cache.shutdown()
            throw error
        }
        await cache.shutdown()
    }

    private func deliver(from cache: MediaCache, to output: OutputFile?) async throws {
        let start = time.monotonicTime()
        let response = try await deliverAgainWhereChanged(from: cache, to: output, start: start)
        try output?.complete()
        if printsJSON {
            try say(GetReport(request, response, elapsed: start.duration(to: time.monotonicTime())))
        }
        if request.isPinned { try await requirePinned(response, in: cache) }
    }

    /// The bytes are out; that they are kept was asked for as well.
    private func requirePinned(_ response: CacheResponse, in cache: MediaCache) async throws {
        let problem: String
        do throws(CacheError) {
            let entry = try await cache.entry(for: request)
            if let entry, entry.isPinned, entry.isComplete || request.range != nil {
                // Of what was delivered, or of what was there before and is kept.
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
            "\(request.target.string) was delivered, but its pin cannot be kept: \(problem)"
        )
    }

    /// A representation that changes while FILE is written starts again; on standard output old
    /// bytes may be out already.
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
            guard response.status.code < 400 else { throw CommandFailure(response.status, request) }
            try await deliver(response, to: output, &progress)
            await job?.didFinish()
            return response
        } catch {
            await job?.didEnd(with: error)
            throw error
        }
    }

    /// The request, with plain words on the terminal for what holds it up.
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
        _ progress: inout ProgressBar
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
    /// The last component of the path, for lines about it on a terminal.
    var name: String {
        target.path.split(separator: "/").last.map(String.init) ?? target.authority
    }
}

extension CommandFailure {
    /// A final status of 400 or more.
    init(_ status: HTTPResponse.Status, _ request: CacheRequest) {
        self.init(
            .originFailed,
            "\(request.target.string) answered with status \(status.code)"
        )
    }
}

extension GetReport {
    init(_ request: CacheRequest, _ response: CacheResponse, elapsed: Duration) {
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
