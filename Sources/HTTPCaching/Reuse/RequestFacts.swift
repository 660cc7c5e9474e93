public import HTTPTypes

/// The caching properties of a request, parsed once.
public struct RequestFacts: Hashable, Sendable {
    /// The method.
    public let method: HTTPRequest.Method
    /// The directives of `Cache-Control`.
    public let cacheControl: RequestCacheControl
    /// Whether there is an `Authorization` field.
    public let hasAuthorization: Bool
    /// The application's policy.
    public let policy: CachePolicy

    /// Parses the fields of a request.
    ///
    /// - Parameters:
    ///   - method: the method, by default GET.
    ///   - fields: the header fields.
    ///   - policy: the application's policy, by default ``CachePolicy/protocolDefault``.
    public init(
        method: HTTPRequest.Method = .get,
        fields: HTTPFields = [:],
        policy: CachePolicy = .protocolDefault
    ) {
        self.method = method
        self.cacheControl = RequestCacheControl(in: fields)
        self.hasAuthorization = fields.contains(.authorization)
        self.policy = policy
    }
}
