/// Why a request is refused before anybody looks at what it wants; the connection is closed then.
struct RequestRefusal: Error, Hashable, CustomStringConvertible {
    /// The status to answer with.
    let status: Int
    /// For the log and for who tests; never echoes the request.
    let description: String

    private init(_ status: Int, _ description: String) {
        self.status = status
        self.description = description
    }

    /// 400: something that two parsers might read in two ways, or that is not HTTP.
    static func malformed(_ what: String) -> RequestRefusal { .init(400, what) }

    static let timeout = RequestRefusal(408, "the request took too long")
    static let bodyTooLarge = RequestRefusal(413, "the body is too large")
    static let targetTooLong = RequestRefusal(414, "the request target is too long")
    static let headTooLarge = RequestRefusal(431, "the head is too large")
    static let version = RequestRefusal(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
}
