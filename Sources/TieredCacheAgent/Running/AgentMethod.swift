import TieredCache

/// A method of the protocol: what it takes, what it gives, and what it does.
///
/// docs/agent-protocol.md has the rows of ``all``.
struct AgentMethod: Sendable {
    typealias Call =
        @Sendable (AgentMethods, RPCParameters) async throws(RPCError) -> JSONValue

    let name: String
    /// Its parameters in their order; one with `?` may be left out.
    let parameters: String
    /// What it gives.
    let result: String
    /// Its own errors, beside those of all: a parameter that is missing or of another type, a GID
    /// that is none, is not there or is not unique, and what cannot be written.
    let errors: String
    let call: Call

    private init(
        _ name: String,
        _ parameters: String = "",
        gives result: String,
        errors: String = "",
        _ call: @escaping Call
    ) {
        self.name = name
        self.parameters = parameters
        self.result = result
        self.errors = errors
        self.call = call
    }

    /// The row of the documentation.
    var row: String { "| `\(name)` | \(parameters) | \(result) | \(errors) |" }

    private static func refuse(_ what: String) -> Call {
        { (_, _) throws(RPCError) in
            throw RPCError("\(what) is not supported here; use addUri with an http or https URL.")
        }
    }

    /// All methods, in the order of the documentation.
    static let all: [AgentMethod] = [
        AgentMethod(
            "aria2.addUri",
            "[uri…], options?, position?",
            gives: "gid",
            errors:
                "`URI is not provided.`, `No URI to download.`, a GID that is taken, an option, `Position must be …`"
        ) { (methods, given) throws(RPCError) in try await methods.addURI(given) },
        AgentMethod(
            "aria2.addTorrent",
            "any",
            gives: "–",
            errors: "`BitTorrent is not supported here; …`",
            refuse("BitTorrent")
        ),
        AgentMethod(
            "aria2.addMetalink",
            "any",
            gives: "–",
            errors: "`Metalink is not supported here; …`",
            refuse("Metalink")
        ),
        AgentMethod(
            "aria2.remove",
            "gid",
            gives: "gid",
            errors: "`Active Download not found for GID#…`"
        ) { (methods, given) throws(RPCError) in try await methods.remove(given) },
        AgentMethod("aria2.forceRemove", "gid", gives: "gid", errors: "as `remove`") {
            (methods, given) throws(RPCError) in try await methods.remove(given)
        },
        AgentMethod("aria2.pause", "gid", gives: "gid", errors: "`GID#… cannot be paused now`") {
            (methods, given) throws(RPCError) in try await methods.pause(given)
        },
        AgentMethod("aria2.forcePause", "gid", gives: "gid", errors: "as `pause`") {
            (methods, given) throws(RPCError) in try await methods.pause(given)
        },
        AgentMethod("aria2.pauseAll", gives: "`OK`") { (methods, _) throws(RPCError) in
            try await methods.pauseAll()
        },
        AgentMethod("aria2.forcePauseAll", gives: "`OK`") { (methods, _) throws(RPCError) in
            try await methods.pauseAll()
        },
        AgentMethod("aria2.unpause", "gid", gives: "gid", errors: "`GID#… cannot be unpaused now`")
        { (methods, given) throws(RPCError) in try await methods.unpause(given) },
        AgentMethod("aria2.unpauseAll", gives: "`OK`") { (methods, _) throws(RPCError) in
            try await methods.unpauseAll()
        },
        AgentMethod(
            "aria2.tellStatus",
            "gid, keys?",
            gives: "a status",
            errors: "`No such download for GID#…`"
        ) { (methods, given) throws(RPCError) in try await methods.tellStatus(given) },
        AgentMethod("aria2.tellActive", "keys?", gives: "list of statuses") {
            (methods, given) throws(RPCError) in try methods.tellActive(given)
        },
        AgentMethod(
            "aria2.tellWaiting",
            "offset, count, keys?",
            gives: "list of statuses",
            errors: "a count below 0"
        ) { (methods, given) throws(RPCError) in try methods.tellWaiting(given) },
        AgentMethod(
            "aria2.tellStopped",
            "offset, count, keys?",
            gives: "list of statuses",
            errors: "a count below 0"
        ) { (methods, given) throws(RPCError) in try await methods.tellStopped(given) },
        AgentMethod(
            "aria2.getUris",
            "gid",
            gives: "list of `uri`, `status`",
            errors: "`No URI data is available for GID#…`"
        ) { (methods, given) throws(RPCError) in try methods.getURIs(given) },
        AgentMethod(
            "aria2.getFiles",
            "gid",
            gives: "list of one file",
            errors: "`No file data is available for GID#…`"
        ) { (methods, given) throws(RPCError) in try await methods.getFiles(given) },
        AgentMethod(
            "aria2.getServers",
            "gid",
            gives: "list of one file with its servers",
            errors: "`No active download for GID#…`"
        ) { (methods, given) throws(RPCError) in try methods.getServers(given) },
        AgentMethod(
            "aria2.getPeers",
            "gid",
            gives: "an empty list",
            errors: "`No peer data is available for GID#…`"
        ) { (methods, given) throws(RPCError) in try methods.getPeers(given) },
        AgentMethod(
            "aria2.changePosition",
            "gid, position, how",
            gives: "the new position",
            errors: "`GID#… not found in the waiting queue.`, `Illegal argument.`"
        ) { (methods, given) throws(RPCError) in try await methods.changePosition(given) },
        AgentMethod(
            "aria2.changeUri",
            "gid, fileIndex, [uri…], [uri…], position?",
            gives: "[removed, added]",
            errors: "`Cannot remove URIs from GID#…`, `fileIndex is out of range`"
        ) { (methods, given) throws(RPCError) in try await methods.changeURI(given) },
        AgentMethod(
            "aria2.getOption",
            "gid",
            gives: "options",
            errors: "`Cannot get option for GID#…`"
        ) { (methods, given) throws(RPCError) in try await methods.getOption(given) },
        AgentMethod(
            "aria2.changeOption",
            "gid, options",
            gives: "`OK`",
            errors: "`Cannot change option for GID#…`, an option"
        ) { (methods, given) throws(RPCError) in try await methods.changeOption(given) },
        AgentMethod("aria2.getGlobalOption", gives: "options") { (methods, _) throws(RPCError) in
            methods.getGlobalOption()
        },
        AgentMethod("aria2.changeGlobalOption", "options", gives: "`OK`", errors: "an option") {
            (methods, given) throws(RPCError) in try await methods.changeGlobalOption(given)
        },
        AgentMethod("aria2.getGlobalStat", gives: "counts and the speed") {
            (methods, _) throws(RPCError) in methods.getGlobalStat()
        },
        AgentMethod("aria2.purgeDownloadResult", gives: "`OK`") { (methods, _) throws(RPCError) in
            try await methods.purge()
        },
        AgentMethod(
            "aria2.removeDownloadResult",
            "gid",
            gives: "`OK`",
            errors: "`Could not remove download result of GID#…`, a result of a session"
        ) { (methods, given) throws(RPCError) in try await methods.removeResult(given) },
        AgentMethod("aria2.getVersion", gives: "`version`, `enabledFeatures`") {
            (_, _) throws(RPCError) in AgentVersion.value
        },
        AgentMethod("aria2.getSessionInfo", gives: "`sessionId`: another one in each process") {
            (methods, _) throws(RPCError) in ["sessionId": .string(methods.agent.sessionID)]
        },
        AgentMethod("aria2.saveSession", gives: "`OK`", errors: "what could not be written") {
            (methods, _) throws(RPCError) in try await methods.saveSession()
        },
        AgentMethod("aria2.shutdown", gives: "`OK`") { (methods, _) throws(RPCError) in
            methods.leave()
        },
        AgentMethod("aria2.forceShutdown", gives: "`OK`") { (methods, _) throws(RPCError) in
            methods.leave()
        },
        AgentMethod(
            "tieredcache.attach",
            "session, options?",
            gives: "`session`, `results`, `unfinished`",
            errors: "a name that is none, an option, too many connections or commands"
        ) { (methods, given) throws(RPCError) in try await methods.attach(given) },
        AgentMethod(
            "tieredcache.acknowledge",
            "session, [gid…]?",
            gives: "how many there were",
            errors: "`This connection is attached to session …`"
        ) { (methods, given) throws(RPCError) in try await methods.acknowledge(given) },
        AgentMethod(
            "tieredcache.fill",
            "url, offset, length?, options?",
            gives: "`length`, `stored`",
            errors: "a range that is none, an option"
        ) { (methods, given) throws(RPCError) in try await methods.fill(given) },
        AgentMethod(
            "tieredcache.require",
            "gid, [condition…]",
            gives: "gid",
            errors: "`Cannot change option for GID#…`, a condition that is none"
        ) { (methods, given) throws(RPCError) in try await methods.require(given) },
        AgentMethod(
            "tieredcache.show",
            "gid",
            gives: "what aria2 has no name for",
            errors: "`No such download for GID#…`"
        ) { (methods, given) throws(RPCError) in try await methods.show(given) },
        // `AgentCalls` has done it before: its calls count among those of the message.
        AgentMethod(
            "system.multicall",
            "[{methodName, params}…]",
            gives: "list of [result] or an error",
            errors:
                "`system.multicall expected struct.`, `Missing methodName.`, `Recursive system.multicall forbidden.`"
        ) { (_, _) throws(RPCError) in throw .unknownMethod("system.multicall") },
        AgentMethod("system.listMethods", gives: "list of names") { (_, _) throws(RPCError) in
            .array(AgentMethod.all.map { .string($0.name) })
        },
        AgentMethod("system.listNotifications", gives: "list of names") { (_, _) throws(RPCError) in
            .array(AgentSocket.notifications.map { .string($0) })
        },
    ]
}
