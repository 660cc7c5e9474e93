package import HTTPCaching
package import HTTPTypes

/// A request of another client that the cache answers as an intermediary (RFC 9110 §3.7).
///
/// In contrast to a ``CacheRequest`` its fields, conditions and ranges are the client's own, and
/// redirects, errors and coded bodies are answers like any other.
package struct RelayRequest: Sendable {
    /// The method; any token.
    package var method: HTTPRequest.Method
    /// The target at the origin.
    package var target: TargetURI
    /// The client's fields.
    ///
    /// What belongs to its connection is left out on the way to the origin, as is `Host`, which
    /// follows from the target.
    package var fields: HTTPFields
    /// The client's body, or nil for none.
    package var body: UploadBody?
    /// Told of each interim response (1xx) that the origin sends before the head, on a thread that
    /// must not wait; connection fields are left out.
    ///
    /// Of several requests that share an exchange, the one that began it is told.
    package var onInterim: (@Sendable (HTTPResponse) -> Void)?
    /// How urgent it is, by default normal.
    package var priority: RequestPriority = .normal

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - target: the target at the origin.
    ///   - fields: the client's fields.
    ///   - body: the client's body, or nil for none.
    package init(
        method: HTTPRequest.Method = .get,
        target: TargetURI,
        fields: HTTPFields = [:],
        body: UploadBody? = nil
    ) {
        self.method = method
        self.target = target.withoutUserinfo
        self.fields = fields
        self.body = body
    }
}

/// The answer to a ``RelayRequest``, ready to be sent to the client.
package struct RelayResponse: Sendable {
    /// The status, with the origin's reason phrase where it is the origin's.
    package let status: HTTPResponse.Status
    /// The end-to-end fields, with `Age`, `Date` and `Cache-Status`; `Content-Length` is there
    /// exactly where the length is known, else the body is to be framed by the server.
    package let fields: HTTPFields
    /// What the cache did, in the words of RFC 9211.
    package let cacheStatus: CacheStatus
    /// The body, to be read once; empty for HEAD and for statuses that have none.
    package let body: ResponseBody

    init(
        status: HTTPResponse.Status,
        fields: HTTPFields,
        cacheStatus: CacheStatus,
        body: any BodySource,
        now: WallTime
    ) {
        var fields = fields
        if fields[.date] == nil { fields[.date] = HTTPDate.format(now) }
        if let name = HTTPField.Name("Cache-Status") {
            // After those of the caches nearer to the origin (RFC 9211 §2).
            fields.append(HTTPField(name: name, value: cacheStatus.fieldValue))
        }
        self.status = status
        self.fields = fields
        self.cacheStatus = cacheStatus
        self.body = ResponseBody(body)
    }
}
