import FoundationEssentials
import HTTPCaching
import HTTPTypes
import TieredCache

extension CacheOptions {
    /// Opens the cache for a command that manages the directory, and closes it afterwards.
    ///
    /// - Parameters:
    ///   - isReading: whether nothing is changed, so that a concurrent download can own the
    ///     directory.
    ///   - isSwept: whether remains of a crash are removed meanwhile.
    ///   - body: uses the cache.
    /// - Returns: the result of `body`.
    /// - Throws: the errors of `body`, and the storage error of the directory. A directory that
    ///   another process owns can still be read.
    func withCache<Result: Sendable>(
        isReading: Bool = false,
        isSwept: Bool = true,
        _ body: @escaping @Sendable (MediaCache) async throws -> Result
    ) async throws -> Result {
        var configuration = configuration()
        configuration.opensForReading = isReading
        configuration.readsDirectoryOnOpening = isSwept && !isReading
        let chosen = configuration
        return try await Interruption.guarding {
            let cache = try MediaCache(chosen)
            do {
                if let storageError = cache.storageError, storageError.code != .notOwner {
                    throw storageError
                }
                let result = try await body(cache)
                await cache.shutdown()
                return result
            } catch {
                await cache.shutdown()
                throw error
            }
        }
    }
}

extension ListCommand {
    func run() async throws {
        let entries = try await cache.withCache(isReading: true) { try await $0.entries() }
        for entry in selection.apply(to: entries).map({ EntryReport($0) }) {
            try StandardOutput.writeLine(json ? JSONLine.text(of: entry) : entry.line)
        }
    }
}

extension StatsCommand {
    func run() async throws {
        let (usage, lifetime) = try await cache.withCache(isReading: true) { cache in
            (try await cache.usage(), await Self.lifetime(of: cache))
        }
        let report = StatsReport(
            entries: Int64(usage.entries),
            bytes: usage.bytes,
            limit: usage.limit,
            lifetime: lifetime
        )
        guard !json else { return try StandardOutput.writeLine(JSONLine.text(of: report)) }
        for line in report.lines { try StandardOutput.writeLine(line) }
    }

    /// Lost sums do not prevent the rest from being shown.
    private static func lifetime(of cache: MediaCache) async -> MediaCache.LifetimeStatistics? {
        do throws(CacheError) {
            return try await cache.lifetimeStatistics()
        } catch {
            StandardError.write("tieredcache: \(error.message)")
            return nil
        }
    }
}

extension EventsCommand {
    func run() async throws {
        let request = try url.map { url throws(CacheError) in try CacheRequest(url, key: key) }
        let now = SystemTimeSource().wallTime()
        let start = since.map { now.advanced(by: .zero - $0.duration) }
        let events = try await cache.withCache(isReading: true) { cache in
            try await cache.recordedEvents(for: request, since: start)
        }
        for event in events.map({ EventReport(event: $0) }) {
            try StandardOutput.writeLine(json ? JSONLine.text(of: event) : event.line)
        }
    }
}

extension ShowCommand {
    func run() async throws {
        let request = try CacheRequest(url, key: key)
        let (entry, owner) = try await cache.withCache(isReading: true) { cache in
            (try await cache.entry(for: request), cache.storageError?.message)
        }
        guard let entry else {
            throw CommandFailure(
                .notCached,
                message: "\(request.target.string) is not in the cache"
            )
        }
        var report = EntryReport(entry)
        report.headers = entry.fields.map { (name: $0.name.rawName, value: $0.value) }
        guard !json else { return try StandardOutput.writeLine(JSONLine.text(of: report)) }
        try StandardOutput.writeLine(report.line)
        let now = SystemTimeSource().wallTime()
        for line in EntryExplanation(entry: entry, now: now, owner: owner).lines {
            try StandardOutput.writeLine(line.asOneLine)
        }
        for header in report.headers ?? [] {
            try StandardOutput.writeLine("\(header.name): \(header.value)")
        }
    }
}

extension PathCommand {
    func run() async throws {
        let request = try CacheRequest(url)
        guard let path = try await path(of: request) else {
            let url = request.target.string
            throw CommandFailure(.notCached, message: "\(url) is not stored in full; get it first")
        }
        try StandardOutput.writeLine(path)
    }

    /// A body inside its record must be written to a file, and one that could lose blocks must be
    /// protected; both need ownership of the directory.
    ///
    /// Any other body has its file.
    private func path(of request: CacheRequest) async throws -> String? {
        do {
            return try await cache.withCache(isReading: true) { cache in
                try await cache.fileURL(for: request)?.path
            }
        } catch let error as CacheError where error.code == .notOwner {
            return try await cache.withCache { try await $0.fileURL(for: request)?.path }
        }
    }
}

extension VerifyCommand {
    func run() async throws {
        let repair = repair
        let isSilent = json
        // Swept files could no longer be reported.
        let found = try await cache.withCache(isReading: !repair, isSwept: false) { cache in
            try await cache.verify(repair: repair) { finding in
                guard !isSilent else { return }
                do throws(CommandFailure) {
                    try StandardOutput.writeLine(finding.line)
                } catch {
                    // A closed pipe is noticed when the sum is written.
                }
            }
        }
        let report = VerifyReport(
            entries: Int64(found.entries),
            blocks: Int64(found.blocks),
            damaged: Int64(found.damaged),
            repaired: Int64(found.repaired)
        )
        try StandardOutput.writeLine(json ? JSONLine.text(of: report) : report.line)
        guard found.damaged > found.repaired else { return }
        let count = found.damaged - found.repaired
        throw CommandFailure(
            .localFailed,
            message:
                "\(count) damaged blocks; run 'tieredcache verify --repair' to have them fetched again"
        )
    }
}
