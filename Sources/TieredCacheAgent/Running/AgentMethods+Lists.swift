import TieredCache

// What clients are told.
extension AgentMethods {
    func tellStatus(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let keys = try given.texts(1) ?? []
        return try await view(given, missing: "No such download for").value(keys: keys)
    }

    /// A download in whatever state it is.
    func view(
        _ given: RPCParameters,
        missing words: String
    ) async throws(RPCError) -> DownloadView {
        let table = table
        let gid = try gid(given, in: table)
        if let download = table.live[gid] {
            return DownloadView(download, in: table)
        }
        guard let record = try await agent.results([gid]).first else {
            throw RPCError("\(words) GID#\(gid)")
        }
        return DownloadView(record, options: table.options)
    }

    func tellActive(_ given: RPCParameters) throws(RPCError) -> JSONValue {
        let keys = try given.texts(0) ?? []
        let table = table
        return .array(
            table.activeOnes.map { DownloadView($0, in: table).value(keys: keys) }
        )
    }

    func tellWaiting(_ given: RPCParameters) throws(RPCError) -> JSONValue {
        let page = try ListPage(given)
        let table = table
        let views = page.apply(to: table.waitingOnes).compactMap { table.live[$0] }
            .map { DownloadView($0, in: table).value(keys: page.keys) }
        return .array(views)
    }

    func tellStopped(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let page = try ListPage(given)
        let table = table
        let records = try await agent.results(page.apply(to: table.stopped))
        return .array(
            records.map { DownloadView($0, options: table.options).value(keys: page.keys) }
        )
    }

    func getFiles(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        try await view(given, missing: "No file data is available for").files
    }

    func getURIs(_ given: RPCParameters) throws(RPCError) -> JSONValue {
        let table = table
        let gid = try gid(given, in: table)
        guard let download = table.live[gid] else {
            throw RPCError("No URI data is available for GID#\(gid)")
        }
        return DownloadView(download, in: table).uris
    }

    func getServers(_ given: RPCParameters) throws(RPCError) -> JSONValue {
        let table = table
        let gid = try gid(given, in: table)
        guard let download = table.live[gid], download.isActive else {
            throw RPCError("No active download for GID#\(gid)")
        }
        return DownloadView(download, in: table).servers
    }

    func getPeers(_ given: RPCParameters) throws(RPCError) -> JSONValue {
        let table = table
        let gid = try gid(given, in: table)
        guard table.live[gid] != nil else {
            throw RPCError("No peer data is available for GID#\(gid)")
        }
        return []
    }

    func getGlobalStat() -> JSONValue {
        let table = table
        let speed = table.activeOnes.reduce(Int64(0)) { $0 &+ $1.speed }
        let text = { (number: Int) in JSONValue.string(String(number)) }
        return [
            "downloadSpeed": .string(String(max(0, speed))), "uploadSpeed": "0",
            "numActive": text(table.activeCount),
            "numWaiting": text(table.order.count - table.activeCount),
            "numStopped": text(table.stopped.count), "numStoppedTotal": text(table.stoppedTotal),
        ]
    }

    /// What the directory of the agent holds of a download: where it is, to play it meanwhile.
    func show(_ given: RPCParameters) async throws(RPCError) -> JSONValue {
        let view = try await view(given, missing: "No such download for")
        let (record, download) = (view.record, table.live[view.record.gid])
        let unknown = download.map { table.unknown(to: $0) } ?? []
        let names = { (conditions: [Condition]) in
            JSONValue.array(conditions.map { .string($0.rawValue) })
        }
        return [
            "gid": .string("\(record.gid)"), "state": .string(record.state.rawValue),
            "url": .string(record.uri ?? ""), "path": .string(record.path),
            "session": record.session.map { .string($0) } ?? .null,
            "lacksCredentials": .bool(record.lacksSecrets), "waitsFor": names(view.awaited),
            "unknown": names(unknown),
        ]
    }
}

/// The part of a list that a call asks for: `offset`, `num` and `keys`.
struct ListPage: Hashable {
    let offset: Int
    let count: Int
    let keys: [String]

    init(_ given: RPCParameters) throws(RPCError) {
        offset = Int(clamping: try given.required(0, as: \.integer))
        let count = try given.required(1, as: \.integer)
        guard count >= 0 else {
            throw RPCError("The integer parameter at 1 has invalid value.")
        }
        self.count = min(Int(clamping: count), AgentMethods.maximumPage)
        keys = try given.texts(2) ?? []
    }

    /// From the offset on; a negative one counts from the end, and the order is reversed then.
    func apply<List: RandomAccessCollection>(to list: List) -> [List.Element]
    where List.Index == Int {
        guard offset < 0 else {
            return Array(list.dropFirst(offset).prefix(count))
        }
        // -1 is the last one.
        let skipped = offset == .min ? Int.max : -offset - 1
        return Array(list.reversed().dropFirst(skipped).prefix(count))
    }
}
