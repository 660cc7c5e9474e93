/// Why a request is refused before it is routed; the connection is closed then.
struct RequestRefusal: Error, Hashable, CustomStringConvertible {
    /// The status of the response.
    let status: Int
    /// The reason, for the log and the response; never echoes the request.
    let description: String

    private init(status: Int, description: String) {
        self.status = status
        self.description = description
    }

    /// 400: the request is not HTTP, or two parsers might read it differently.
    static func malformed(_ what: String) -> RequestRefusal {
        .init(status: 400, description: what)
    }

    static let timeout = RequestRefusal(status: 408, description: "the request took too long")
    static let bodyTooLarge = RequestRefusal(status: 413, description: "the body is too large")
    static let targetTooLong = RequestRefusal(
        status: 414,
        description: "the request target is too long"
    )
    static let headTooLarge = RequestRefusal(status: 431, description: "the head is too large")
    static let version = RequestRefusal(
        status: 505,
        description: "only HTTP/1.1 and HTTP/1.0 are spoken here"
    )
}
