package import OrderedCollections
package import TieredCache

// The sessions of applications.
extension DownloadTable {
    /// The sessions whose commands outlive the process.
    private var sessionRecords: [Session.Record] {
        sessions.values.map(\.record).filter { !$0.command.isEmpty }.sorted { $0.name < $1.name }
    }

    /// What clients see that are attached to a session: its own downloads alone; all without one.
    package func seen(by session: String?) -> DownloadTable {
        guard let session else { return self }
        var table = self
        table.live = live.filter { $0.value.record.session == session }
        table.order = order.filter { table.live[$0] != nil }
        table.active = active.filter { table.live[$0] != nil }
        table.stopped = sessions[session]?.results.keys ?? []
        table.stoppedTotal = table.stopped.count
        return table
    }

    /// The download of a text, among those of a session, or of all without one.
    ///
    /// - Throws: ``RPCError`` in aria2's words.
    func gid(_ text: String, seenBy session: String?) throws(RPCError) -> GID {
        try seen(by: session).gid(text)
    }

    /// The session whose result a download is.
    func session(ofResult gid: GID) -> String? {
        sessions.values.first { $0.results[gid] != nil }?.record.name
    }

    // MARK: Applications

    /// What an application gets that attaches.
    package struct Attachment: Hashable, Sendable {
        package let name: String
        /// What it has not acknowledged, in the order in which it came.
        package let results: OrderedDictionary<GID, Session.Result>
        package let unfinished: [GID]
        /// The rank of the last result of all: what is told later and has a lower one is among
        /// ``results``.
        package let rank: Int64
    }

    /// An application is there.
    ///
    /// - Parameters:
    ///   - name: its session, which is made if need be.
    ///   - command: what is run for it from now on; nil leaves that as it is, an empty one is none.
    /// - Returns: what it gets, and what is to be done.
    /// - Throws: ``RPCError`` where there are too many commands, or connections of the session.
    mutating func attach(
        _ name: String,
        command: [String]?
    ) throws(RPCError) -> (Attachment, [Action]) {
        let before = sessionRecords
        var session = sessions[name] ?? Session(name: name)
        guard session.attachments < Session.maximumAttachments else {
            throw RPCError(
                "At most \(Session.maximumAttachments) connections attach to a session."
            )
        }
        if let command {
            if !command.isEmpty, session.record.command.isEmpty { try makeRoomForCommand() }
            session.set(command: command)
        }
        session.attach()
        sessions[name] = session
        let attachment = Attachment(
            name: name,
            results: session.results,
            unfinished: order.filter { session.unfinished.contains($0) },
            rank: lastRank
        )
        return (attachment, saveSessions(unless: before))
    }

    /// Forgets a session that has had a command and nothing else, where there are many commands.
    private mutating func makeRoomForCommand() throws(RPCError) {
        let records = sessionRecords
        guard records.count >= SessionForm.maximumCommands else { return }
        guard let unused = records.first(where: { sessions[$0.name]?.isIdle == true }) else {
            throw RPCError("At most \(SessionForm.maximumCommands) sessions have a command.")
        }
        sessions[unused.name] = nil
    }

    /// A connection of an application has ended.
    mutating func detach(_ name: String, now: MonotonicTime) -> [Action] {
        let before = sessionRecords
        sessions[name]?.detach(now: now)
        dropIfOver(name)
        return saveSessions(unless: before)
    }

    /// Forgets results that an application knows; others are ignored.
    ///
    /// - Parameters:
    ///   - gids: which; nil for all.
    ///   - name: the session.
    /// - Returns: how many there were, and what is to be done.
    mutating func acknowledge(_ gids: [GID]?, of name: String) -> (count: Int, actions: [Action]) {
        guard let results = sessions[name]?.results else { return (0, []) }
        let before = sessionRecords
        let gone = sessions[name]?.acknowledge(gids ?? Array(results.keys)) ?? []
        forgetStopped(gone)
        dropIfOver(name)
        let forgotten = gone.map { Action.forget($0) }
        return (gone.count, forgotten + saveSessions(unless: before))
    }

    private mutating func forgetStopped(_ gone: Set<GID>) {
        if gone.count <= Session.few {
            for gid in gone { stopped.remove(gid) }
        } else {
            stopped.subtract(gone)
        }
    }

    private mutating func dropIfOver(_ name: String) {
        if sessions[name]?.isOver == true { sessions[name] = nil }
    }

    private func saveSessions(unless before: [Session.Record]) -> [Action] {
        let records = sessionRecords
        return records == before ? [] : [.saveSessions(records)]
    }

    // MARK: Time

    /// The process begins.
    package mutating func beginSessions(now: MonotonicTime) {
        for name in sessions.keys { sessions[name]?.begin(now: now) }
    }

    /// Runs the commands that are due, and forgets results that stay too long.
    package mutating func lookAfterSessions(now: MonotonicTime, date: Int64) -> [Action] {
        guard !isClosing, !sessions.isEmpty else { return [] }
        let before = sessionRecords
        var runs: [Action] = []
        var actions: [Action] = []
        for name in sessions.keys.sorted() {
            guard var session = sessions[name] else { continue }
            if session.takeRun(now: now) {
                runs.append(.run(SessionCommand(session: name, words: session.record.command)))
            }
            let gone = session.acknowledge(session.expired(date: date))
            forgetStopped(gone)
            actions += gone.map { .forget($0) }
            sessions[name] = session
            dropIfOver(name)
        }
        // What counts as run is on disk before it runs: never twice.
        return actions + saveSessions(unless: before) + runs
    }
}

/// The program that is run for a session, with its arguments.
package struct SessionCommand: Hashable, Sendable {
    package let session: String
    package let words: [String]
}
