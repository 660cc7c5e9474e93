import HTTPCaching
import Logging

/// Records the counters and events of a directory that this process owns.
///
/// Callers only append to a list in memory; an I/O thread writes the files every ten seconds, when
/// the list is long, and when the directory is closed. So a killed process loses its last ten
/// seconds. A guest records nothing. Hits appear only in the counters.
final class DirectoryHistory: Sendable {
    /// Proof that the calling thread holds the lock of the files.
    ///
    /// ``withFileLock(_:)`` alone makes it. It collects what is logged after the release of the
    /// lock: a log handler is the application's code, and may ask for the history.
    private struct FileLock: ~Copyable {
        var messages: [(level: Logger.Level, text: Logger.Message, error: CacheError)] = []

        fileprivate init() {}
    }

    private struct State {
        /// The directory, as long as this process owns it.
        var store: DiskStore?
        /// The counters of earlier owners; nil until they were read.
        var earlier: MediaCache.LifetimeStatistics?
        /// The counters of this process when it became the owner.
        var start = MediaCache.Statistics()
        var saved = MediaCache.Statistics()
        var pending: [MediaCache.RecordedEvent] = []
        var lost: Int64 = 0
        var isDue = false
    }

    /// How often the files are written, if there are changes.
    static let interval = Duration.seconds(10)
    /// The number of events that are written without that wait.
    private static let batch = 512
    /// The maximum number of events that wait in memory.
    private static let maximumPending = 8192

    private let counters: StatisticsCounters
    private let time: any TimeSource
    private let io: IOExecutor
    private let logger: Logger
    private let state = Guarded(State())
    private let files = KeyedLock(.history)

    init(
        counters: StatisticsCounters,
        time: any TimeSource,
        io: IOExecutor,
        logger: Logger
    ) {
        self.counters = counters
        self.time = time
        self.io = io
        self.logger = logger
    }

    // MARK: The directory

    /// Starts recording for a directory that this process owns.
    func begin(_ store: DiskStore) {
        guard store.access.canWrite, HistoryFiles(store: store).isKept else { return }
        let start = counters.statistics
        let isFirst = state.withLock { state in
            guard state.store == nil else { return false }
            state.store = store
            state.earlier = nil
            state.start = start
            state.saved = start
            return true
        }
        if isFirst { HistoryFiles(store: store).reserveSpace() }
    }

    /// Writes all records before the directory is closed.
    ///
    /// Blocks on the disk.
    func end(_ store: DiskStore) {
        guard state.withLock({ $0.store === store }) else { return }
        write()
        state.withLock { $0.store = nil }
    }

    // MARK: Recording

    func note(
        _ kind: MediaCache.RecordedEvent.Kind,
        because reason: String? = nil,
        key: CacheKey?,
        name: EntryName? = nil,
        count: Int64 = 0
    ) {
        guard let store = state.withLock({ $0.store }) else { return }
        let event = MediaCache.RecordedEvent(
            time: time.wallTime(),
            kind: kind,
            reason: reason,
            entry: (name ?? key.map(store.name(of:)))?.digest.hexadecimal,
            count: count,
            url: key?.redactedURL
        )
        let isDue = state.withLock { state in
            guard state.pending.count < Self.maximumPending else {
                state.lost += 1
                return false
            }
            state.pending.append(event)
            guard state.pending.count >= Self.batch, !state.isDue else { return false }
            state.isDue = true
            return true
        }
        guard isDue else { return }
        Task(executorPreference: io) { self.write() }
    }

    // MARK: Writing

    /// Writes all changes; blocks on the disk.
    ///
    /// Counters that could not be written are retried the next time, events are counted as lost.
    func write() {
        withFileLock { lock in
            guard let store = state.withLock({ $0.store }) else { return }
            let files = HistoryFiles(store: store)
            // In this order: damaged counters of earlier owners are an event.
            for step in [writeStatistics, writeEvents] {
                do throws(CacheError) {
                    try step(&lock, files)
                } catch {
                    store.count(\.housekeepingErrors)
                    lock.messages.append((.debug, "history not written", error))
                }
            }
        }
    }

    private func withFileLock<Result>(_ body: (inout FileLock) -> Result) -> Result {
        var lock = FileLock()
        defer {
            for (level, text, error) in lock.messages {
                logger.log(level: level, text, metadata: [LogKeys.error: "\(error)"])
            }
        }
        return files.withLock { body(&lock) }
    }

    private func writeEvents(
        _ lock: inout FileLock,
        _ files: HistoryFiles
    ) throws(CacheError) {
        let (events, lost) = state.withLock { state in
            defer {
                state.pending = []
                state.lost = 0
                state.isDue = false
            }
            return (state.pending, state.lost)
        }
        guard !events.isEmpty else { return }
        var lines: [UInt8] = []
        do throws(CacheError) {
            for event in events {
                let line = Array(event.line.utf8)
                if lines.count + line.count > 4096 {
                    try files.append(lines)
                    lines = []
                }
                lines += line
            }
            if lost > 0 {
                let event = MediaCache.RecordedEvent(
                    time: time.wallTime(),
                    kind: .lost,
                    count: lost
                )
                lines += event.line.utf8
            }
            try files.append(lines)
        } catch {
            // Not kept: they would pile up as long as the disk fails.
            state.withLock { $0.lost += lost + Int64(events.count) }
            throw error
        }
    }

    private func writeStatistics(
        _ lock: inout FileLock,
        _ files: HistoryFiles
    ) throws(CacheError) {
        let now = counters.statistics
        guard state.withLock({ $0.saved != now }) else { return }
        let lifetime = lifetime(&lock, in: files, now: now)
        try files.save(lifetime)
        state.withLock { $0.saved = now }
    }

    /// Writes every ten seconds; ends when its task is cancelled.
    func writePeriodically(on io: IOExecutor, time: any TimeSource) async {
        while true {
            do {
                try await time.sleep(for: Self.interval)
            } catch {
                return  // The rest is written when the directory is closed.
            }
            await io.run { self.write() }
        }
    }

    // MARK: Reading

    /// The counters of a directory, including those of this process if it owns it; blocks on the
    /// disk.
    ///
    /// - Returns: nil if there is no record.
    func lifetime(of store: DiskStore) throws(CacheError) -> MediaCache.LifetimeStatistics? {
        let files = HistoryFiles(store: store)
        guard state.withLock({ $0.store === store }) else { return try files.loadStatistics() }
        return withFileLock { lifetime(&$0, in: files, now: counters.statistics) }
    }

    /// The events of a directory, oldest first; blocks on the disk.
    func events(of store: DiskStore) throws(CacheError) -> [MediaCache.RecordedEvent] {
        if state.withLock({ $0.store === store }) { write() }
        return try HistoryFiles(store: store).loadEvents()
    }

    /// Reads the counters of earlier owners the first time.
    private func lifetime(
        _ lock: inout FileLock,
        in files: HistoryFiles,
        now: MediaCache.Statistics
    ) -> MediaCache.LifetimeStatistics {
        let (known, start) = state.withLock { ($0.earlier, $0.start) }
        let earlier = known ?? loadEarlier(&lock, files)
        if known == nil { state.withLock { $0.earlier = earlier } }
        return MediaCache.LifetimeStatistics(
            since: earlier.since,
            statistics: earlier.statistics + (now - start)
        )
    }

    /// Reads the counters of earlier owners; zero if the file is missing or damaged.
    private func loadEarlier(
        _ lock: inout FileLock,
        _ files: HistoryFiles
    ) -> MediaCache.LifetimeStatistics {
        let fresh = MediaCache.LifetimeStatistics(
            since: time.wallTime(),
            statistics: MediaCache.Statistics()
        )
        do throws(CacheError) {
            return try files.loadStatistics() ?? fresh
        } catch {
            lock.messages.append((.warning, "the counters restart at zero", error))
            note(.corrupted, because: "statistics", key: nil)
            return fresh
        }
    }
}

extension CacheKey {
    /// The URL without userinfo and query; nil for a key of another kind.
    fileprivate var redactedURL: String? {
        let isURL = string.hasPrefix("http://") || string.hasPrefix("https://")
        return isURL ? redacted : nil
    }
}
