/// The answer to one call.
package struct RPCAnswer: Hashable, Sendable {
    /// The identifier of the call.
    package let id: JSONValue
    /// What the method gave.
    package let result: Result<JSONValue, RPCError>

    /// The message.
    package var value: JSONValue {
        switch result {
        case .success(let result): ["id": id, "jsonrpc": "2.0", "result": result]
        case .failure(let error): ["id": id, "jsonrpc": "2.0", "error": error.value]
        }
    }
}

/// The answers to a message, as bytes.
package struct RPCReply: Hashable, Sendable {
    /// The status of an HTTP response.
    package let status: Int
    /// The bytes.
    package let body: [UInt8]

    /// The reply to one call.
    package init(_ answer: RPCAnswer) {
        body = answer.value.encoded
        if case .failure(let error) = answer.result {
            status = error.status
        } else {
            status = 200
        }
    }

    /// The reply to a batch; its status tells of no error.
    package init(_ answers: [RPCAnswer]) {
        status = 200
        body = JSONValue.array(answers.map(\.value)).encoded
    }
}
