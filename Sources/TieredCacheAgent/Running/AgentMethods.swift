import TieredCache

/// The methods of an agent, by their names: what a call gives.
struct AgentMethods: Sendable {
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

    private static let all = Dictionary(
        uniqueKeysWithValues: AgentMethod.all.map { ($0.name, $0.call) }
    )

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
