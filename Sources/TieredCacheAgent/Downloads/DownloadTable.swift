package import OrderedCollections
package import TieredCache

/// The downloads of an agent: which there are, in which order, which run.
///
/// Decides alone: each input returns what is to be done, in this order. States of a download, by
/// aria2's names: `waiting` ⇄ `active`, both ⇄ `paused`; from `active` to `complete` and `error`,
/// by ``remove(_:)`` to `removed`; what waits or is paused is forgotten when it is removed.
package struct DownloadTable: Sendable {
    /// What the runner has to do.
    package enum Action: Hashable, Sendable {
        /// Write the record.
        case save(DownloadRecord)
        /// Remove the record.
        case forget(GID)
        /// Write the options of the agent.
        case saveOptions(DownloadOptions)
        /// Begin a run.
        case start(GID, run: Int)
        /// End a run; what has come stays.
        case stop(GID, run: Int)
        /// Evict what has come of a URL like anything else.
        case release(String)
        /// Tell clients.
        case notify(DownloadNotification)
        /// Write the sessions.
        case saveSessions([Session.Record])
        /// Run the command of a session, when all before is written.
        case run(SessionCommand)
    }

    /// A download that has not stopped.
    package struct Live: Hashable, Sendable {
        package var record: DownloadRecord
        /// The number of its run; nil while it does not run.
        package var run: Int?
        /// When the run began.
        var since = MonotonicTime(nanoseconds: 0)
        /// When it may run again at the earliest, after a failure.
        var notBefore: MonotonicTime?
        /// Bytes per second.
        package var speed: Int64 = 0

        package var isActive: Bool { run != nil }
    }

    static let rankStep: Int64 = 1 << 20

    /// Those that have not stopped.
    package internal(set) var live: [GID: Live] = [:]
    /// Their order.
    package internal(set) var order: [GID] = []
    /// Those that have, the one that stopped first in front; their records are on disk alone.
    package internal(set) var stopped: OrderedSet<GID> = []
    /// Those that stopped, the removed results included.
    package internal(set) var stoppedTotal = 0
    /// The options of the agent.
    package internal(set) var options: DownloadOptions
    /// Those with downloads, results or connections, by their names.
    package internal(set) var sessions: [String: Session] = [:]
    var active: Set<GID> = []
    var lastRank: Int64 = 0
    var lastRun = 0
    /// What is known of the machine; nil before anything was learned.
    var machine: MachineState?
    /// Whether nothing is started any more.
    var isClosing = false

    /// Creates a table of what an earlier process has left.
    ///
    /// - Parameters:
    ///   - records: the downloads that had not stopped, in any order.
    ///   - stopped: the others, in their order.
    ///   - lastRank: the highest rank among all.
    ///   - options: the options of the agent.
    ///   - results: those of ``stopped`` that their sessions have not acknowledged.
    ///   - sessions: the commands of sessions.
    package init(
        records: [DownloadRecord] = [],
        stopped: OrderedSet<GID> = [],
        lastRank: Int64 = 0,
        options: DownloadOptions = DownloadOptions(),
        results: [GID: JournalResult] = [:],
        sessions: [Session.Record] = []
    ) {
        self.options = options
        for record in sessions { self.sessions[record.name] = Session(record) }
        for gid in stopped {
            guard let told = results[gid] else { continue }
            let new = Session(name: told.session)
            self.sessions[told.session, default: new].restore(gid, told.result)
        }
        self.stopped = stopped
        self.lastRank = records.reduce(lastRank) { max($0, $1.rank) }
        stoppedTotal = stopped.count
        for var record in records.sorted(by: { ($0.rank, $0.gid.number) < ($1.rank, $1.gid.number) }
        ) {
            // An origin would refuse it without them.
            if record.lacksSecrets { record.state = .paused }
            live[record.gid] = Live(record: record)
            order.append(record.gid)
            if let name = record.session {
                self.sessions[name, default: Session(name: name)].add(record.gid)
            }
        }
        for (name, session) in self.sessions where session.isOver { self.sessions[name] = nil }
    }

    /// How many run.
    package var activeCount: Int { active.count }
    /// Those that run, in their order.
    package var activeOnes: [Live] { order.compactMap { live[$0] }.filter(\.isActive) }
    /// Those that wait or are paused, in their order.
    package var waitingOnes: [GID] { order.filter { !active.contains($0) } }
    /// Whether any runs, or would without a command, or the program of a session is to be run.
    package var isBusy: Bool {
        live.values.contains { $0.record.state == .waiting }
            || sessions.values.contains(where: \.awaitsRun)
    }
    /// How many run at once.
    var maximumActive: Int { Int(clamping: options.number("max-concurrent-downloads")) }

    /// When a download that waits after a failure is due next; nil for none.
    package var nextDue: MonotonicTime? { live.values.compactMap(\.notBefore).min() }

    mutating func nextRank() -> Int64 {
        lastRank += Self.rankStep
        return lastRank
    }

    /// Makes one that runs wait.
    mutating func end(_ download: inout Live) {
        download.run = nil
        download.speed = 0
        active.remove(download.record.gid)
    }

    mutating func drop(_ gid: GID) {
        live[gid] = nil
        active.remove(gid)
        order.removeAll { $0 == gid }
    }

    /// Makes one a result.
    ///
    /// - Returns: the actions, with the word to clients.
    mutating func stop(
        _ stopping: DownloadRecord,
        now: MonotonicTime,
        date: Int64
    ) -> [Action] {
        var record = stopping
        drop(record.gid)
        record.rank = nextRank()
        record.stopped = date
        stopped.append(record.gid)
        stoppedTotal += 1
        guard let result = record.result else { return [.save(record)] }
        if let name = record.session {
            sessions[name, default: Session(name: name)].didStop(record.gid, result, now: now)
        }
        // The file that was made of a whole body lets go of it.
        let freed = record.state == .complete ? [] : release(of: record)
        return [.save(record)] + freed + [notification(result.event, record)]
    }

    /// Lets go of what has come of one, unless another one wants it.
    func release(of record: DownloadRecord) -> [Action] {
        guard let uri = record.uri, !live.values.contains(where: { $0.record.uri == uri }) else {
            return []
        }
        return [.release(uri)]
    }

    func notification(_ event: DownloadEvent, _ record: DownloadRecord) -> Action {
        .notify(
            DownloadNotification(
                event: event,
                gid: record.gid,
                session: record.session,
                rank: record.state.isStopped ? record.rank : nil,
                isLast: record.session.map { sessions[$0]?.unfinished.isEmpty ?? true } ?? false
            )
        )
    }

    // MARK: Identifiers

    /// The download of a text: a GID, or the beginning of just one.
    ///
    /// - Throws: ``RPCError`` in aria2's words.
    package func gid(_ text: String) throws(RPCError) -> GID {
        let digits = text.lowercased()
        guard (1...16).contains(text.utf8.count), digits.allSatisfy({ $0.isASCII && $0.isHexDigit })
        else { throw RPCError("Invalid GID \(text)") }
        if let gid = GID(digits) {
            guard contains(gid) else { throw .notFound(text) }
            return gid
        }
        let known = live.keys.filter { $0.description.hasPrefix(digits) }
        let results = stopped.lazy.filter { $0.description.hasPrefix(digits) }.prefix(2)
        let found = known + results
        guard let first = found.first else { throw .notFound(text) }
        guard found.count == 1 else { throw RPCError("GID \(text) is not unique") }
        return first
    }

    package func contains(_ gid: GID) -> Bool { live[gid] != nil || stopped.contains(gid) }
}

extension DownloadRecord {
    /// What a session is told of it; nil for one that has not stopped.
    var result: Session.Result? {
        let event: DownloadEvent
        switch state {
        case .waiting, .paused: return nil
        case .complete: event = .complete
        case .error: event = .error
        case .removed: event = .stop
        }
        return Session.Result(event: event, date: stopped ?? 0)
    }
}
