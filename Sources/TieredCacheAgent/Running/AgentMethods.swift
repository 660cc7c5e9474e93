import TieredCache

/// The methods of an agent, by their names: what a call gives.
struct AgentMethods: Sendable {
    typealias Method = @Sendable (AgentMethods, RPCParameters) async throws(RPCError) -> JSONValue

    /// The most entries of one list; a client asks for the next ones by its offset.
    static let maximumPage = 1000

    let agent: Agent
    /// Ends the process, for `shutdown`.
    let shutdown: @Sendable () -> Void
    /// Whether the caller is known by the credentials of its process, and may have programs run.
    var isLocal = true
    /// What the connection is attached to; nil for a message of its own.
    var attachment: AgentAttachment?

    /// The session whose downloads the caller sees; nil for those of all.
    var session: String? { attachment?.session }
    /// What the caller sees.
    var table: DownloadTable { agent.table.seen(by: session) }

    /// Gives what a method gives.
    ///
    /// - Throws: ``RPCError``.
    func call(_ call: RPCCall) async throws(RPCError) -> JSONValue {
        guard let method = Self.all[call.method] else { throw .unknownMethod(call.method) }
        return try await method(self, call.parameters)
    }

    static let names = all.keys.sorted()

    private static let all: [String: Method] = [
        "aria2.addUri": { (methods, given) throws(RPCError) in try await methods.addURI(given) },
        "aria2.addTorrent": refuse("BitTorrent"),
        "aria2.addMetalink": refuse("Metalink"),
        "aria2.remove": { (methods, given) throws(RPCError) in try await methods.remove(given) },
        "aria2.forceRemove": { (methods, given) throws(RPCError) in try await methods.remove(given)
        },
        "aria2.pause": { (methods, given) throws(RPCError) in try await methods.pause(given) },
        "aria2.forcePause": { (methods, given) throws(RPCError) in try await methods.pause(given) },
        "aria2.pauseAll": { (methods, _) throws(RPCError) in try await methods.pauseAll() },
        "aria2.forcePauseAll": { (methods, _) throws(RPCError) in try await methods.pauseAll() },
        "aria2.unpause": { (methods, given) throws(RPCError) in try await methods.unpause(given) },
        "aria2.unpauseAll": { (methods, _) throws(RPCError) in try await methods.unpauseAll() },
        "aria2.tellStatus": { (methods, given) throws(RPCError) in
            try await methods.tellStatus(given)
        },
        "aria2.tellActive": { (methods, given) throws(RPCError) in try methods.tellActive(given) },
        "aria2.tellWaiting": { (methods, given) throws(RPCError) in try methods.tellWaiting(given)
        },
        "aria2.tellStopped": { (methods, given) throws(RPCError) in
            try await methods.tellStopped(given)
        },
        "aria2.getUris": { (methods, given) throws(RPCError) in try methods.getURIs(given) },
        "aria2.getFiles": { (methods, given) throws(RPCError) in try await methods.getFiles(given)
        },
        "aria2.getServers": { (methods, given) throws(RPCError) in try methods.getServers(given) },
        "aria2.getPeers": { (methods, given) throws(RPCError) in try methods.getPeers(given) },
        "aria2.changePosition": { (methods, given) throws(RPCError) in
            try await methods.changePosition(given)
        },
        "aria2.changeUri": { (methods, given) throws(RPCError) in
            try await methods.changeURI(given)
        },
        "aria2.getOption": { (methods, given) throws(RPCError) in
            try await methods.getOption(given)
        },
        "aria2.changeOption": { (methods, given) throws(RPCError) in
            try await methods.changeOption(given)
        },
        "aria2.getGlobalOption": { (methods, _) throws(RPCError) in methods.getGlobalOption() },
        "aria2.changeGlobalOption": { (methods, given) throws(RPCError) in
            try await methods.changeGlobalOption(given)
        },
        "aria2.getGlobalStat": { (methods, _) throws(RPCError) in methods.getGlobalStat() },
        "aria2.purgeDownloadResult": { (methods, _) throws(RPCError) in try await methods.purge() },
        "aria2.removeDownloadResult": { (methods, given) throws(RPCError) in
            try await methods.removeResult(given)
        },
        "aria2.getVersion": { (_, _) throws(RPCError) in AgentVersion.value },
        "aria2.getSessionInfo": { (methods, _) throws(RPCError) in
            ["sessionId": .string(methods.agent.sessionID)]
        },
        "aria2.saveSession": { (methods, _) throws(RPCError) in try await methods.saveSession() },
        "aria2.shutdown": { (methods, _) throws(RPCError) in methods.leave() },
        "aria2.forceShutdown": { (methods, _) throws(RPCError) in methods.leave() },
        "tieredcache.attach": { (methods, given) throws(RPCError) in
            try await methods.attach(given)
        },
        "tieredcache.acknowledge": { (methods, given) throws(RPCError) in
            try await methods.acknowledge(given)
        },
        "tieredcache.fill": { (methods, given) throws(RPCError) in try await methods.fill(given) },
        "tieredcache.require": { (methods, given) throws(RPCError) in
            try await methods.require(given)
        },
        "tieredcache.show": { (methods, given) throws(RPCError) in try await methods.show(given) },
        "system.listMethods": { (_, _) throws(RPCError) in
            .array((names + ["system.multicall"]).map { .string($0) })
        },
        "system.listNotifications": { (_, _) throws(RPCError) in
            .array(
                (DownloadEvent.allCases.map(\.rawValue) + [AgentSocket.drained])
                    .map { .string($0) }
            )
        },
    ]

    private static func refuse(_ what: String) -> Method {
        { (_, _) throws(RPCError) in
            throw RPCError("\(what) is not supported here; use addUri with an http or https URL.")
        }
    }

    // MARK: Parameters

    func gid(_ given: RPCParameters, in table: DownloadTable) throws(RPCError) -> GID {
        try table.gid(try given.required(0, as: \.string))
    }

    func position(_ given: RPCParameters, at index: Int) throws(RPCError) -> Int? {
        guard let position = try given.optional(index, as: \.integer) else { return nil }
        guard position >= 0 else {
            throw RPCError("Position must be greater than or equal to 0.")
        }
        return Int(clamping: position)
    }

    func answer(_ gid: GID) -> JSONValue { .string("\(gid)") }
}

/// `getVersion`.
enum AgentVersion {
    /// The version of aria2 whose protocol this is, since programs compare it.
    static let protocolVersion = "1.36.0"

    static let value: JSONValue = [
        "version": .string(protocolVersion),
        "enabledFeatures": ["HTTPS", "Message Digest", "TieredCache"],
    ]
}
