/// One call of a method.
package struct RPCCall: Hashable, Sendable {
    /// What the answer repeats; nil in `system.multicall`.
    package var id: JSONValue?
    /// The name of the method.
    package var method: String
    /// The parameters, without the token.
    package var parameters: RPCParameters
    /// The secret of `token:SECRET`; nil if the call has none.
    package var token: String?

    /// A call from its parts: a first parameter that begins with `token:` is the secret.
    package init(id: JSONValue? = nil, method: String, parameters: [JSONValue]) {
        self.id = id
        self.method = method
        let prefix = "token:"
        if let first = parameters.first?.string, first.hasPrefix(prefix) {
            token = String(first.dropFirst(prefix.count))
            self.parameters = RPCParameters(values: Array(parameters.dropFirst()))
        } else {
            self.parameters = RPCParameters(values: parameters)
        }
    }

    /// Reads a member of a message.
    ///
    /// - Throws: the error, and the identifier that its answer repeats.
    static func read(_ value: JSONValue) throws(Refusal) -> RPCCall {
        guard let id = value["id"] else { throw Refusal(id: .null, error: .invalidRequest) }
        guard let method = value["method"]?.string else {
            throw Refusal(id: id, error: .invalidRequest)
        }
        guard let parameters = value["params"] else {
            return RPCCall(id: id, method: method, parameters: [])
        }
        guard let parameters = parameters.array else {
            throw Refusal(id: id, error: .invalidParams)
        }
        return RPCCall(id: id, method: method, parameters: parameters)
    }

    /// Why a member of a message is no call.
    package struct Refusal: Error, Hashable {
        /// What the answer repeats.
        package let id: JSONValue
        /// The reason.
        package let error: RPCError
    }
}

/// The parameters of a call, read as aria2 reads them.
package struct RPCParameters: Hashable, Sendable {
    let values: [JSONValue]

    /// A parameter that must be there.
    ///
    /// - Throws: ``RPCError`` where it is missing, or of another type.
    func required<Value>(
        _ index: Int,
        as value: (JSONValue) -> Value?
    ) throws(RPCError) -> Value {
        guard let result = try optional(index, as: value) else {
            throw RPCError("The parameter at \(index) is required but missing.")
        }
        return result
    }

    /// A parameter that may be missing.
    ///
    /// - Throws: ``RPCError`` where it is of another type.
    func optional<Value>(
        _ index: Int,
        as value: (JSONValue) -> Value?
    ) throws(RPCError) -> Value? {
        guard values.indices.contains(index) else { return nil }
        guard let result = value(values[index]) else {
            throw RPCError("The parameter at \(index) has wrong type.")
        }
        return result
    }

    /// The texts of a list; others in it are ignored, as aria2 does.
    func texts(_ index: Int) throws(RPCError) -> [String]? {
        try optional(index, as: \.array)?.compactMap(\.string)
    }
}
