import HTTPCaching
import TieredCache

// What clients change.
extension AgentMethods {
    // MARK: Adding

    func addURI(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let uris = try given.required(0, as: \.array).compactMap(\.string)
        let members = try given.optional(1, as: \.object) ?? [:]
        let position = try position(given, at: 2)
        guard !uris.isEmpty else { throw RPCError("URI is not provided.") }
        let order = try NewDownload(uris: uris, options: members, session: session)
        let gid = try await agent.perform { (table, moment) throws(RPCError) in
            let gid = try order.gid(in: table)
            let actions = table.add(
                gid,
                uris: order.uris,
                options: order.options,
                position: position,
                now: moment.now
            )
            return (gid, actions)
        }
        return answer(gid)
    }

    // MARK: States

    func change(
        _ given: RPCParameters,
        _ body:
            @Sendable (inout DownloadTable, GID, Agent.Moment) throws(RPCError)
            -> [DownloadTable.Action]
    ) async throws(RPCError) -> JSONValue {
        let text = try given.required(0, as: \.string)
        let session = session
        return answer(
            try await agent.perform { (table, moment) throws(RPCError) in
                let gid = try table.gid(text, seenBy: session)
                return (gid, try body(&table, gid, moment))
            }
        )
    }

    func changeAll(
        _ body: @Sendable (inout DownloadTable, MonotonicTime) -> [DownloadTable.Action]
    ) async throws(RPCError) -> JSONValue {
        try await agent.perform { (table, moment) throws(RPCError) in
            ((), body(&table, moment.now))
        }
        return "OK"
    }

    func remove(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        try await change(given) { (table, gid, moment) throws(RPCError) in
            try table.remove(gid, now: moment.now, date: moment.date)
        }
    }

    func pause(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        try await change(given) { (table, gid, moment) throws(RPCError) in
            try table.pause(gid, now: moment.now)
        }
    }

    func unpause(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        try await change(given) { (table, gid, moment) throws(RPCError) in
            try table.unpause(gid, now: moment.now)
        }
    }

    func pauseAll() async throws(RPCError) -> JSONValue {
        let session = session
        return try await changeAll { table, now in table.pauseAll(of: session, now: now) }
    }

    func unpauseAll() async throws(RPCError) -> JSONValue {
        let session = session
        return try await changeAll { table, now in table.unpauseAll(of: session, now: now) }
    }

    func purge() async throws(RPCError) -> JSONValue {
        let session = session
        return try await changeAll { table, _ in table.purge(of: session) }
    }

    func removeResult(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let session = session
        _ = try await change(given) { (table, gid, _) throws(RPCError) in
            try table.removeResult(gid, seenBy: session)
        }
        return "OK"
    }

    func saveSession() async throws(RPCError) -> JSONValue {
        // Every answer is on disk; this one writes what could not be written before.
        try await changeAll { _, _ in [] }
    }

    func leave() -> JSONValue {
        shutdown()
        return "OK"
    }

    // MARK: Order and options

    func changePosition(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let text = try given.required(0, as: \.string)
        let position = try given.required(1, as: \.integer)
        guard
            let origin = DownloadTable.PositionOrigin(
                rawValue: try given.required(2, as: \.string)
            )
        else { throw RPCError("Illegal argument.") }
        let session = session
        let place = try await agent.perform { (table, _) throws(RPCError) in
            try table.move(try table.gid(text, seenBy: session), to: position, from: origin)
        }
        return .integer(Int64(place))
    }

    func changeURI(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let text = try given.required(0, as: \.string)
        let index = try given.required(1, as: \.integer)
        guard index >= 1 else {
            throw RPCError("The integer parameter at 1 has invalid value.")
        }
        // The record has no userinfo.
        let removing = try given.required(2, as: \.array).compactMap(\.string)
            .map { NewDownload.target($0)?.withoutUserinfo.string ?? $0 }
        let adding = try given.required(3, as: \.array).compactMap(\.string)
            .compactMap { NewDownload.target($0) }
        let position = try position(given, at: 4)
        let session = session
        let (removed, added) = try await agent.perform { (table, moment) throws(RPCError) in
            let gid = try table.gid(text, seenBy: session)
            guard index == 1 || table.live[gid] == nil else {
                throw RPCError("fileIndex is out of range")
            }
            let (removed, added, actions) = try table.changeURIs(
                gid,
                removing: removing,
                adding: adding,
                position: position,
                now: moment.now
            )
            return ((removed, added), actions)
        }
        return [.integer(Int64(removed)), .integer(Int64(added))]
    }

    func getOption(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let view = try await view(given, missing: "Cannot get option for")
        let told = OptionNames.defaults.merging(view.options.values) { _, own in own }
        return .object(
            told.filter { !OptionNames.global.contains($0.key) }.mapValues { .string($0) }
        )
    }

    func changeOption(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let options = try given.required(1, as: \.object)
        _ = try await change(given) { (table, gid, moment) throws(RPCError) in
            try table.change(gid, options: options, now: moment.now)
        }
        return "OK"
    }

    /// `tieredcache.require`: what a download requires from now on.
    func require(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let names = try given.required(1, as: \.array)
        let conditions = names.compactMap { $0.string.flatMap(Condition.init) }
        guard conditions.count == names.count else { throw .option("require") }
        return try await change(given) { (table, gid, moment) throws(RPCError) in
            let ordered = Condition.allCases.filter(conditions.contains)
            return try table.require(gid, ordered, now: moment.now)
        }
    }

    func getGlobalOption() -> JSONValue {
        let told = OptionNames.defaults.merging(agent.table.options.values) { _, own in own }
        return .object(told.mapValues { .string($0) })
    }

    func changeGlobalOption(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let options = try given.required(0, as: \.object)
        try await agent.perform { (table, moment) throws(RPCError) in
            ((), try table.change(options: options, now: moment.now))
        }
        agent.applyBandwidth()
        return "OK"
    }
}
