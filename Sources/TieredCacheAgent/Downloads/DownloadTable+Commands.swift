import HTTPCaching
import OrderedCollections
import TieredCache

// What clients ask for.
extension DownloadTable {
    /// Adds a download, whose identifier is not taken: at a position among those that wait, or at
    /// their end.
    mutating func add(
        _ gid: GID,
        uris: [String],
        options: DownloadOptions,
        position: Int?,
        now: MonotonicTime
    ) -> [Action] {
        var record = DownloadRecord(gid: gid, uris: uris, options: options, rank: nextRank())
        record.session = options["session"]
        if options.isTrue("pause") { record.state = .paused }
        live[gid] = Live(record: record)
        order.append(gid)
        if let name = record.session {
            sessions[name, default: Session(name: name)].add(gid)
        }
        var actions: [Action] = []
        if let position, position < waitingOnes.count - 1 {
            actions = place(gid, at: position)
        } else {
            actions = [.save(record)]
        }
        return actions + fillSlots(now: now)
    }

    /// Pauses one that runs or waits.
    ///
    /// - Throws: ``RPCError`` for any other.
    mutating func pause(_ gid: GID, now: MonotonicTime) throws(RPCError) -> [Action] {
        guard var download = live[gid], download.record.state == .waiting else {
            throw RPCError("GID#\(gid) cannot be paused now")
        }
        let run = download.run
        download.record.state = .paused
        download.notBefore = nil
        end(&download)
        live[gid] = download
        guard let run else { return [.save(download.record)] }
        // It was before all that wait, and stays there.
        return [.stop(gid, run: run)] + place(gid, at: 0) + [notification(.pause, download.record)]
            + fillSlots(now: now)
    }

    /// Pauses all that run or wait, of a session or all.
    mutating func pauseAll(of session: String?, now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        let order = seen(by: session).order
        // From the end, or one that is about to be paused would be started.
        for gid in order.reversed() where live[gid]?.isActive == false {
            actions += ignoringRefusal { (table) throws(RPCError) in try table.pause(gid, now: now)
            }
        }
        for gid in order.reversed() {
            actions += ignoringRefusal { (table) throws(RPCError) in try table.pause(gid, now: now)
            }
        }
        return actions
    }

    /// Lets one go on.
    ///
    /// - Throws: ``RPCError`` for one that is not paused.
    mutating func unpause(_ gid: GID, now: MonotonicTime) throws(RPCError) -> [Action] {
        guard live[gid]?.record.state == .paused else {
            throw RPCError("GID#\(gid) cannot be unpaused now")
        }
        return release(gid) + fillSlots(now: now)
    }

    /// Lets all go on that are paused, of a session or all.
    mutating func unpauseAll(of session: String?, now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        for gid in seen(by: session).order where live[gid]?.record.state == .paused {
            actions += release(gid)
        }
        return actions + fillSlots(now: now)
    }

    mutating func release(_ gid: GID) -> [Action] {
        guard var download = live[gid] else { return [] }
        download.record.state = .waiting
        // Whoever wants it to go on without them has been told.
        download.record.lacksSecrets = false
        live[gid] = download
        return [.save(download.record)]
    }

    mutating func ignoringRefusal(
        _ body: (inout DownloadTable) throws(RPCError) -> [Action]
    ) -> [Action] {
        do throws(RPCError) {
            return try body(&self)
        } catch {
            return []  // It is in that state already.
        }
    }

    /// Removes one that runs, or belongs to a session, which leaves a result; what else waits is
    /// forgotten, as aria2 does.
    ///
    /// - Throws: ``RPCError`` for one that has stopped.
    mutating func remove(_ gid: GID, now: MonotonicTime, date: Int64) throws(RPCError) -> [Action] {
        guard let download = live[gid] else {
            throw RPCError("Active Download not found for GID#\(gid)")
        }
        guard download.run != nil || download.record.session != nil else {
            drop(gid)
            return [.forget(gid)] + release(of: download.record)
        }
        var record = download.record
        (record.state, record.errorCode, record.errorMessage) = (.removed, 31, "")
        let ending = download.run.map { [Action.stop(gid, run: $0)] } ?? []
        return ending + stop(record, now: now, date: date) + fillSlots(now: now)
    }

    /// Forgets the result of one.
    ///
    /// - Throws: ``RPCError`` where there is none, and where a session has not acknowledged it.
    mutating func removeResult(_ gid: GID, seenBy session: String?) throws(RPCError) -> [Action] {
        guard stopped.contains(gid) else {
            throw RPCError("Could not remove download result of GID#\(gid)")
        }
        guard let owner = self.session(ofResult: gid) else {
            stopped.remove(gid)
            return [.forget(gid)]
        }
        guard owner == session else {
            throw RPCError("GID#\(gid) is a result of session \(owner); acknowledge it there")
        }
        return acknowledge([gid], of: owner).actions
    }

    /// Forgets all results of a session, or those of no session.
    mutating func purge(of session: String?) -> [Action] {
        if let session { return acknowledge(nil, of: session).actions }
        let owned = sessions.values.reduce(into: Set<GID>()) { $0.formUnion($1.results.keys) }
        let kept = OrderedSet(stopped.filter { owned.contains($0) })
        defer { stopped = kept }
        return stopped.subtracting(kept).map { .forget($0) }
    }

    /// Changes options of one that has not stopped.
    ///
    /// One that runs begins anew with them, from what has come.
    mutating func change(
        _ gid: GID,
        options given: [String: JSONValue],
        now: MonotonicTime
    ) throws(RPCError) -> [Action] {
        guard var download = live[gid] else {
            throw RPCError("Cannot change option for GID#\(gid)")
        }
        let before = download.record.options
        try download.record.options.take(given)
        for fixed in ["gid", "session"] { download.record.options.set(fixed, to: before[fixed]) }
        guard download.record.options != before else { return [] }
        let run = download.run
        end(&download)
        live[gid] = download
        guard let run else { return [.save(download.record)] }
        return [.stop(gid, run: run), .save(download.record)] + fillSlots(now: now)
    }

    /// Changes options of the agent.
    mutating func change(
        options given: [String: JSONValue],
        now: MonotonicTime
    ) throws(RPCError) -> [Action] {
        let before = options
        // As in aria2, what holds for one download alone is passed by.
        try options.take(given.filter { !OptionNames.local.contains($0.key) })
        guard options != before else { return [] }
        return [.saveOptions(options)] + fillSlots(now: now)
    }

    /// Takes URLs away from one that has not stopped, and adds others.
    mutating func changeURIs(
        _ gid: GID,
        removing: [String],
        adding: [TargetURI],
        position: Int?,
        now: MonotonicTime
    ) throws(RPCError) -> (removed: Int, added: Int, actions: [Action]) {
        guard var download = live[gid] else {
            throw RPCError("Cannot remove URIs from GID#\(gid)")
        }
        var uris = download.record.uris
        let current = download.record.uri
        var removed = 0
        for uri in removing {
            guard let index = uris.firstIndex(of: uri) else { continue }
            uris.remove(at: index)
            removed += 1
        }
        let place = min(position ?? uris.count, uris.count)
        uris.insert(contentsOf: adding.map(\.withoutUserinfo.string), at: place)
        guard removed > 0 || !adding.isEmpty else { return (0, 0, []) }
        try NewDownload.check(uris)
        download.record.uris = uris
        if let userinfo = adding.lazy.compactMap(\.userinfo).first {
            download.record.options.take(userinfo: userinfo)
        }
        let index = current.flatMap { uris.firstIndex(of: $0) }
        // What runs goes on; without its URL it begins with the first.
        download.record.failed = index ?? 0
        guard index == nil, let run = download.run else {
            live[gid] = download
            return (removed, adding.count, [.save(download.record)])
        }
        end(&download)
        live[gid] = download
        let actions =
            [.stop(gid, run: run), .save(download.record)] + fillSlots(now: now)
        return (removed, adding.count, actions)
    }
}
