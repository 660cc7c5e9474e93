/// An error as aria2 tells it to a program.
package struct RPCError: Error, Hashable, Sendable {
    /// 1 where the method refuses, else a code of JSON-RPC 2.0.
    package let code: Int64
    /// One sentence; that of aria2 wherever it has one for the case.
    package let message: String

    /// Creates an error of a method.
    package init(_ message: String) {
        self.init(code: 1, message: message)
    }

    private init(code: Int64, message: String) {
        self.code = code
        self.message = message
    }

    static let parse = RPCError(code: -32700, message: "Parse error.")
    static let invalidRequest = RPCError(code: -32600, message: "Invalid Request.")
    static let invalidParams = RPCError(code: -32602, message: "Invalid params.")
    static let unauthorized = RPCError("Unauthorized")

    static func notFound(_ text: String) -> RPCError { RPCError("GID \(text) is not found") }

    static func unknownMethod(_ name: String) -> RPCError { RPCError("No such method: \(name)") }

    static func option(_ name: String) -> RPCError {
        RPCError("We encountered a problem while processing the option '--\(name)'.")
    }

    /// The value of `error`.
    package var value: JSONValue { ["code": .integer(code), "message": .string(message)] }

    /// The status of an HTTP response that carries the error, as aria2 chooses it.
    package var status: Int {
        switch code {
        case 1, -32600: 400
        default: 500
        }
    }
}
