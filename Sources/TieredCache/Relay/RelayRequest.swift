package import HTTPCaching
package import HTTPTypes

/// A request of another client that the cache answers as an intermediary (RFC 9110 §3.7).
///
/// Unlike in a ``CacheRequest``, the fields, conditions and ranges are those of the client, and
/// redirects, errors and coded bodies are returned like any response.
package struct RelayRequest: Sendable {
    /// The method; any token.
    package var method: HTTPRequest.Method
    /// The target at the origin.
    package var target: TargetURI
    /// The client's fields.
    ///
    /// Connection fields are removed on the way to the origin, as is `Host`, which follows from the
    /// target.
    package var fields: HTTPFields
    /// The client's body, or nil for none.
    package var body: UploadBody?
    /// Called with each interim response (1xx) of the origin before the head, on a thread that must
    /// not wait; without connection fields.
    ///
    /// Of several requests that share an exchange, only the first is called.
    package var onInterim: (@Sendable (HTTPResponse) -> Void)?
    /// How the cache may answer, by default as the protocol says.
    package var policy = CachePolicy.protocolDefault
    /// The priority, by default normal.
    package var priority: RequestPriority = .normal
    /// Whether the client is the application itself, which may have what it fetched; false for
    /// the client of a proxy.
    package var isForApplication = false

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

/// The response to a ``RelayRequest``, ready to be sent to the client.
package struct RelayResponse: Sendable {
    /// The status, with the origin's reason phrase if the origin has sent one.
    package let status: HTTPResponse.Status
    /// The end-to-end fields, with `Age`, `Date` and `Cache-Status`; without `Content-Length` the
    /// server frames the body itself.
    package let fields: HTTPFields
    /// How the cache handled the request, in the terms of RFC 9211.
    package let cacheStatus: CacheStatus
    /// The body, readable once; empty for HEAD and for statuses without content.
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
            // After the members of caches nearer to the origin (RFC 9211 §2).
            fields.append(HTTPField(name: name, value: cacheStatus.fieldValue))
        }
        self.status = status
        self.fields = fields
        self.cacheStatus = cacheStatus
        self.body = ResponseBody(body)
    }
}
