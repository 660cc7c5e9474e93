import HTTPCaching
import HTTPTypes
import Logging
package import SystemPackage
package import TieredCache

/// The downloads of a cache directory: carries out what ``DownloadTable`` decides.
package final class Agent: Sendable {
    private struct State {
        var table: DownloadTable
        var pending = AgentStore.Batch()
        var runs: [Int: Task<Void, Never>] = [:]
        var limiters: [GID: (rate: Int64, limiter: BandwidthLimiter)] = [:]
        var watchers: [UInt64: Watcher] = [:]
        var lastWatcher: UInt64 = 0
    }

    private let commands: SessionRunner
    private let machine: any MachineSource

    /// Gets each notification, on a thread that must not wait.
    package typealias Watcher = @Sendable (DownloadNotification) -> Void

    package let cache: MediaCache
    let files: IOExecutor
    let logger: Logger
    let time: any TimeSource
    let secretFields: Set<HTTPField.Name>
    /// What is told by `getSessionInfo`: another one in each process.
    let sessionID: String
    private let store: AgentStore
    private let state: Guarded<State>

    /// Opens the downloads of a cache directory; starts none.
    ///
    /// - Parameters:
    ///   - configuration: that of the cache.
    ///   - cache: the cache, which owns its directory; the caller shuts it down, after the agent.
    ///   - options: those of the agent where none were changed.
    ///   - socket: where commands of sessions can ask it.
    ///   - machine: what downloads may require; by default this machine.
    /// - Throws: ``CacheError``, `.localStorage`, `.notOwner`, `.formatTooNew`.
    package init(
        _ configuration: MediaCache.Configuration,
        cache: MediaCache,
        options: DownloadOptions,
        socket: FilePath? = nil,
        machine: (any MachineSource)? = nil
    ) async throws(CacheError) {
        guard let directory = configuration.path else {
            throw CacheError(.invalidArgument, "an agent needs a cache directory")
        }
        if let error = cache.storageError { throw error }
        let files = IOExecutor(threads: 2, name: "tc-agent")
        let (store, contents) = try await files.run { () throws(CacheError) in
            var contents = AgentJournal.Contents()
            let journal = try AgentJournal.open(in: directory, reading: &contents)
            return (AgentStore(journal, files: files), contents)
        }
        self.cache = cache
        self.files = files
        logger = configuration.logger
        time = configuration.timeSource
        secretFields = configuration.secretFields
        var random = SystemRandomNumberGenerator()
        sessionID = (0..<5).map { _ in
            GID(number: UInt64(UInt32.random(in: 0 ... .max, using: &random))).description.suffix(8)
        }.joined()
        self.store = store
        self.machine =
            machine
            ?? MachineWatch(
                monitor: configuration.networkMonitor,
                directory: directory,
                files: files
            )
        commands = SessionRunner(socket: socket, logger: configuration.logger)
        if contents.unreadable > 0 {
            logger.warning("\(contents.unreadable) records of downloads cannot be read")
        }
        state = Guarded(
            State(
                table: DownloadTable(
                    records: contents.records,
                    stopped: contents.stopped,
                    lastRank: contents.lastRank,
                    options: contents.options.over(options),
                    results: contents.results,
                    sessions: contents.sessions
                )
            )
        )
        applyBandwidth()
    }

    /// A copy of what there is.
    var table: DownloadTable { state.withLock { $0.table } }

    /// Whether any download runs, or would without a command.
    package var isBusy: Bool { state.withLock { $0.table.isBusy } }

    /// Starts what an earlier process has left.
    package func resume() async {
        await performIgnoringFailure { table, moment in
            table.beginSessions(now: moment.now)
            return table.fillSlots(now: moment.now)
        }
        // A process that was killed has not written down what came last.
        for record in table.live.values.map(\.record) where record.completed == 0 {
            await findStored(record)
        }
    }

    private func findStored(_ record: DownloadRecord) async {
        let options = record.options.over(table.options)
        do {
            let place = try DownloadPath(options, uri: record.uri ?? "")
            let request = try CacheRequest(record.uri ?? "")
            guard let entry = try await cache.entry(for: request) else { return }
            update {
                $0.didFind(
                    record.gid,
                    stored: entry.storedBytes,
                    total: entry.length,
                    path: place.path.string
                )
            }
        } catch {
            // Its run will fail for the same reason, and say so.
            logger.debug("a download cannot be looked at", metadata: ["error": "\(error)"])
        }
    }

    /// Ends all runs, which go on in the next process, and all writing.
    package func close() async {
        await performIgnoringFailure { table, _ in table.close() }
        for run in state.withLock({ Array($0.runs.values) }) { await run.value }
        // What the runs have reported last.
        await performIgnoringFailure { table, _ in table.live.values.map { .save($0.record) } }
    }

    // MARK: Inputs

    /// The time of an input.
    struct Moment {
        let now: MonotonicTime
        /// Seconds since 1970.
        let date: Int64
    }

    private var moment: Moment {
        Moment(now: time.monotonicTime(), date: time.wallTime().nanoseconds / 1_000_000_000)
    }

    /// Gives the table an input, and does what it decides; returns when it is on disk.
    ///
    /// - Throws: the error of the input; ``RPCError`` where it cannot be written. It holds all the
    ///   same then, and is written as soon as that is possible.
    @discardableResult
    func perform<Result: Sendable>(
        _ input:
            @Sendable (inout DownloadTable, Moment) throws(RPCError) -> (
                Result, [DownloadTable.Action]
            )
    ) async throws(RPCError) -> Result {
        let moment = moment
        let (result, actions, stopped) = try state.withLock { (state) throws(RPCError) in
            let (result, actions) = try input(&state.table, moment)
            return (result, actions, take(actions, state: &state))
        }
        for run in stopped { run.cancel() }
        // Their last byte is on disk before the caller learns that they have stopped.
        for run in stopped { await run.value }
        for case .release(let uri) in actions { await release(uri) }
        do throws(CacheError) {
            try await flush()
        } catch {
            throw RPCError(error.message)
        }
        return result
    }

    private func performIgnoringFailure(
        _ input: @Sendable (inout DownloadTable, Moment) -> [DownloadTable.Action]
    ) async {
        do throws(RPCError) {
            try await perform { (table, moment) throws(RPCError) in ((), input(&table, moment)) }
        } catch {
            logger.error("the downloads cannot be written", metadata: ["error": "\(error.message)"])
        }
    }

    /// Gives the table what needs no action.
    func update(_ input: @Sendable (inout DownloadTable) -> Void) {
        state.withLock { input(&$0.table) }
    }

    /// - Returns: the tasks of runs that are to end: cancelled behind the lock, since `cancel()` calls
    ///   what waits for that.
    private func take(_ actions: [DownloadTable.Action], state: inout State) -> [Task<Void, Never>]
    {
        var stopped: [Task<Void, Never>] = []
        for action in actions {
            switch action {
            case .save(let record):
                state.pending.changes.append(.save(withoutSecrets(record)))
            case .forget(let gid):
                state.limiters[gid] = nil
                state.pending.changes.append(.forget(gid))
            case .saveOptions(let options):
                state.pending.changes.append(
                    .options(options.withoutSecrets(secretFields).options)
                )
            case .saveSessions(let sessions):
                state.pending.changes.append(.sessions(sessions))
            case .run(let command):
                state.pending.commands.append(command)
            case .notify(let notification):
                state.pending.notifications.append(notification)
            case .release:
                continue  // When the runs have ended.
            case .start(let gid, let run):
                let work = DownloadRun(gid: gid, number: run, agent: self)
                state.runs[run] = Task { [weak self] in
                    await work.run()
                    self?.forget(run)
                }
            case .stop(_, let run):
                if let task = state.runs[run] { stopped.append(task) }
            }
        }
        return stopped
    }

    /// From now on a body is evicted like any other.
    func release(_ uri: String) async {
        do throws(CacheError) {
            try await cache.setPinned(false, for: try CacheRequest(uri))
        } catch {
            logger.warning("a body stays pinned", metadata: ["error": "\(error)"])
        }
    }

    private func forget(_ run: Int) {
        state.withLock { _ = $0.runs.removeValue(forKey: run) }
    }

    private func withoutSecrets(_ record: DownloadRecord) -> DownloadRecord {
        var record = record
        let (options, isLess) = record.options.withoutSecrets(secretFields)
        record.options = options
        if isLess, !record.state.isStopped { record.lacksSecrets = true }
        return record
    }

    // MARK: Writing and telling

    private func flush() async throws(CacheError) {
        try await store.write(
            taking: { [self] in
                state.withLock { state in
                    defer { state.pending = AgentStore.Batch() }
                    return state.pending
                }
            },
            puttingBack: { [self] batch in
                state.withLock { state in
                    state.pending.changes.insert(contentsOf: batch.changes, at: 0)
                    state.pending.notifications.insert(contentsOf: batch.notifications, at: 0)
                    state.pending.commands.insert(contentsOf: batch.commands, at: 0)
                }
            },
            done: { [self] batch in
                let watchers = state.withLock { Array($0.watchers.values) }
                for notification in batch.notifications {
                    for watcher in watchers { watcher(notification) }
                }
                for command in batch.commands { commands.run(command) }
            }
        )
    }

    /// Adds a watcher of notifications, which are told when what they tell of is on disk.
    ///
    /// - Returns: the number for ``removeWatcher(_:)``.
    package func addWatcher(_ watcher: @escaping Watcher) -> UInt64 {
        state.withLock { state in
            state.lastWatcher += 1
            state.watchers[state.lastWatcher] = watcher
            return state.lastWatcher
        }
    }

    package func removeWatcher(_ number: UInt64) {
        let watcher = state.withLock { $0.watchers.removeValue(forKey: number) }
        withExtendedLifetime(watcher) {}
    }

    // MARK: Runs

    /// The record of a run with the options that hold for it; nil where it is over.
    func order(of gid: GID, run: Int) -> (DownloadRecord, DownloadOptions)? {
        state.withLock { state in
            guard let download = state.table.live[gid], download.run == run else { return nil }
            return (download.record, download.record.options.over(state.table.options))
        }
    }

    /// The limiter of a download, with this rate from now on; 0 for none.
    func limiter(of gid: GID, rate: Int64) -> BandwidthLimiter {
        let limits = BandwidthLimits(total: rate > 0 ? rate : nil)
        let limiter = state.withLock { state in
            let limiter = state.limiters[gid]?.limiter ?? BandwidthLimiter(limits, time: time)
            state.limiters[gid] = (rate, limiter)
            return limiter
        }
        limiter.set(limits)
        return limiter
    }

    /// The rate of all downloads together, by the options; what plays has no part in it.
    func applyBandwidth() {
        let rate = state.withLock { $0.table.options.number("max-overall-download-limit") }
        cache.setBandwidth(
            BandwidthLimits(byPriority: rate > 0 ? [DownloadOrder.priority: rate] : [:])
        )
    }

    func didEnd(_ gid: GID, run: Int, _ outcome: DownloadTable.Outcome) async {
        await performIgnoringFailure { table, moment in
            table.didEnd(gid, run: run, outcome, now: moment.now, date: moment.date)
        }
        state.withLock { $0.limiters[gid] = nil }
    }

    /// Records how much of a body is stored, when a run was ended.
    func didStop(_ gid: GID, request: CacheRequest) async {
        do throws(CacheError) {
            guard let entry = try await cache.entry(for: request) else { return }
            await performIgnoringFailure { table, _ in
                table.didStop(gid, stored: entry.storedBytes, total: entry.length)
            }
        } catch {
            logger.warning("a body cannot be looked at", metadata: ["error": "\(error)"])
        }
    }

    /// Records a file before it gets its name.
    ///
    /// - Returns: false where the run is over.
    /// - Throws: ``DownloadFailure`` where that cannot be written.
    func willDeliver(
        _ gid: GID,
        run: Int,
        _ delivery: DownloadRecord.Delivery
    ) async throws(DownloadFailure) -> Bool {
        do throws(RPCError) {
            return try await perform { (table, _) throws(RPCError) in
                let actions = table.willDeliver(gid, run: run, delivery)
                return (actions != nil, actions ?? [])
            }
        } catch {
            throw DownloadFailure(file: error.message, code: 17)
        }
    }

    /// Looks after what waits for its time or for the machine: downloads after a failure, slices,
    /// commands of sessions, what could not be written.
    package func tick() async {
        // Where no download requires anything nothing is asked.
        let known = state.withLock(\.table.hasConditions) ? await machine.state() : nil
        await performIgnoringFailure { table, moment in
            table.didLearn(known, now: moment.now)
                + table.shareSlots(now: moment.now)
                + table.lookAfterSessions(now: moment.now, date: moment.date)
        }
        await withTaskExecutorPreference(files) { commands.reap() }
    }

    // MARK: Sessions

    /// An application is there, until ``detach(_:)``.
    ///
    /// - Parameters:
    ///   - session: the name of its session.
    ///   - command: what is run for it; nil leaves that as it is, an empty one is none.
    /// - Returns: what it gets.
    /// - Throws: ``RPCError``.
    func attach(
        _ session: String,
        command: [String]?
    ) async throws(RPCError) -> DownloadTable.Attachment {
        let result: Result<DownloadTable.Attachment, RPCError>
        let isInTable = Guarded(false)
        do throws(RPCError) {
            result = try await perform { (table, _) throws(RPCError) in
                do throws(RPCError) {
                    let (attachment, actions) = try table.attach(session, command: command)
                    isInTable.withLock { $0 = true }
                    return (.success(attachment), actions)
                } catch {
                    return (.failure(error), [])
                }
            }
        } catch {
            // In the table, but not on disk: the application has to try again.
            if isInTable.withLock({ $0 }) { await detach(session) }
            throw error
        }
        return try result.get()
    }

    func detach(_ session: String) async {
        await performIgnoringFailure { table, moment in table.detach(session, now: moment.now) }
    }

    // MARK: Results

    /// The records of downloads that have stopped.
    func results(_ gids: [GID]) async throws(RPCError) -> [DownloadRecord] {
        do throws(CacheError) {
            return try await store.records(gids)
        } catch {
            throw RPCError(error.message)
        }
    }
}
