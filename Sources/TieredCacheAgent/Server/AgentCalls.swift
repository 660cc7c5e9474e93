import TieredCache

/// Answers messages, by whatever way they come.
struct AgentCalls: Sendable {
    /// The most bytes of an answer, about; the calls behind are refused.
    static let maximumAnswer = 32 << 20
    /// These need no secret, as with aria2.
    private static let open: Set = ["system.listMethods", "system.listNotifications"]

    var methods: AgentMethods
    /// What calls have to know; nil where the credentials of the peer are enough.
    let secret: AgentSecret?

    /// Answers a message; takes longer where a secret was wrong.
    ///
    /// - Returns: the reply, and whether the message has shown that its sender knows the secret.
    func reply(to message: RPCMessage) async -> (reply: RPCReply, knowsSecret: Bool) {
        var budget = Budget()
        let reply: RPCReply
        switch message {
        case .one(let call):
            reply = RPCReply(await answer(call, &budget))
        case .batch(let calls):
            var answers: [RPCAnswer] = []
            for call in calls { answers.append(await answer(call, &budget)) }
            reply = RPCReply(answers)
        }
        if budget.secret == .wrong { await secret?.delay() }
        return (reply, budget.secret == .right)
    }

    /// What a message has shown, and what it may still cost.
    private struct Budget {
        /// Whether a call had the secret.
        ///
        /// A message has one guess: behind a wrong one no other secret is looked at.
        enum Secret { case unknown, right, wrong }

        var secret = Secret.unknown
        var calls = RPCMessage.maximumCalls
        var bytes = AgentCalls.maximumAnswer
    }

    private func answer(
        _ call: Result<RPCCall, RPCCall.Refusal>,
        _ budget: inout Budget
    ) async -> RPCAnswer {
        switch call {
        case .failure(let refusal):
            return RPCAnswer(id: refusal.id, result: .failure(refusal.error))
        case .success(let call):
            return RPCAnswer(id: call.id ?? .null, result: await result(of: call, &budget))
        }
    }

    private func result(
        of call: RPCCall,
        _ budget: inout Budget
    ) async -> Result<JSONValue, RPCError> {
        do throws(RPCError) {
            if call.method == "system.multicall" {
                return .success(try await multicall(call.parameters, &budget))
            }
            return .success(try await value(of: call, &budget))
        } catch {
            return .failure(error)
        }
    }

    private func value(of call: RPCCall, _ budget: inout Budget) async throws(RPCError) -> JSONValue
    {
        budget.calls -= 1
        guard budget.calls >= 0 else { throw .tooManyCalls }
        if let secret, !Self.open.contains(call.method) {
            guard budget.secret != .wrong, secret.allows(call.token) else {
                budget.secret = .wrong
                throw .unauthorized
            }
            budget.secret = .right
        }
        guard budget.bytes > 0 else {
            throw RPCError("The answer is too long; ask for less at once.")
        }
        let value = try await methods.call(call)
        budget.bytes -= value.weight
        return value
    }

    private func multicall(
        _ parameters: RPCParameters,
        _ budget: inout Budget
    ) async throws(RPCError) -> JSONValue {
        var answers: [JSONValue] = []
        for member in try parameters.required(0, as: \.array) {
            do throws(RPCError) {
                answers.append([try await value(of: Self.call(member), &budget)])
            } catch {
                answers.append(error.value)
            }
        }
        return .array(answers)
    }

    private static func call(_ member: JSONValue) throws(RPCError) -> RPCCall {
        guard member.object != nil else { throw RPCError("system.multicall expected struct.") }
        guard let name = member["methodName"]?.string else {
            throw RPCError("Missing methodName.")
        }
        guard name != "system.multicall" else {
            throw RPCError("Recursive system.multicall forbidden.")
        }
        return RPCCall(method: name, parameters: member["params"]?.array ?? [])
    }
}

extension JSONValue {
    /// About how many bytes it takes as text.
    fileprivate var weight: Int {
        switch self {
        case .null, .bool, .integer, .number: 8
        case .string(let text): text.utf8.count + 3
        case .array(let elements): elements.reduce(2) { $0 + $1.weight }
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + $1.value.weight }
        }
    }
}
