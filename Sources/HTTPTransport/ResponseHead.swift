package import HTTPTypes

/// The head of a response, interim or final, and how what follows it is framed.
package struct ResponseHead: Sendable {
    /// How the end of a body is found (RFC 9112 §6.3).
    package enum Framing: Hashable, Sendable {
        /// There is no body.
        case none
        case length(Int64)
        case chunked
        /// The body ends with the connection.
        case untilClose
    }

    package let response: HTTPResponse
    package let framing: Framing
    /// Whether the peer lets another request follow on the connection.
    package let mayPersist: Bool

    /// Whether other heads follow before the final one.
    ///
    /// A switch of protocols ends HTTP on the connection, and is final.
    package var isInterim: Bool { response.status.kind == .informational && !isSwitch }

    private var isSwitch: Bool { response.status == .switchingProtocols }
}

/// Why bytes are not a response that can be trusted.
package struct ResponseSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// For people.
    package let description: String

    private init(_ description: String) {
        self.description = description
    }

    static let unfinished = ResponseSyntaxError("the head of the response is not complete")
    static let noStatusLine = ResponseSyntaxError("the response has no status line of HTTP/1")
    static let lowStatus = ResponseSyntaxError("the status of the response is below 100")
    static let noColon = ResponseSyntaxError("a line in the head of the response has no colon")
    static let invalidName = ResponseSyntaxError("a field of the response has an invalid name")
    static let foldWithoutField = ResponseSyntaxError(
        "the head of the response begins with a space"
    )
    static let controlCharacter = ResponseSyntaxError("the head of the response has CR or NUL")
    static let tooManyFields = ResponseSyntaxError("the response has more than 2000 fields")
    static let headTooLong = ResponseSyntaxError("the head of the response is longer than 256 KiB")
    static let invalidLength = ResponseSyntaxError("Content-Length of the response is no number")
    static let twoLengths = ResponseSyntaxError("the response says two lengths")
    static let lengthBesideCoding = ResponseSyntaxError("the response has a length beside a coding")
    static let severalCodings = ResponseSyntaxError("the response has chunks beside other codings")
    static let invalidChunk = ResponseSyntaxError("a chunk of the response has no valid size")
    static let chunkTooLong = ResponseSyntaxError("a chunk of the response is longer than it says")
    static let trailersTooLong = ResponseSyntaxError("the trailers of the response exceed 64 KiB")
    static let tooManyInterims = ResponseSyntaxError(
        "the server sent more than 64 interim responses"
    )
    static let unasked = ResponseSyntaxError("the server sent bytes that nothing had asked for")
}
