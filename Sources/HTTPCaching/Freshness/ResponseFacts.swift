public import HTTPTypes

/// The caching properties of a response, parsed once and kept with the entry.
///
/// All decisions depend only on these values and allocate nothing.
public struct ResponseFacts: Hashable, Sendable {
    /// The value of `Expires` (RFC 9111 §5.3).
    public enum Expires: Hashable, Sendable {
        /// No such field.
        case absent
        /// Anything but a single date, such as `0`: already expired.
        case invalid
        /// A date.
        case at(WallTime)
    }

    /// The status code.
    public let status: Int
    /// The directives of `Cache-Control`.
    public let cacheControl: ResponseCacheControl
    /// The directives for shared caches only, which replace the others there (RFC 9213); nil for
    /// none.
    public let targetedControl: ResponseCacheControl?
    /// `Expires`.
    public let expires: Expires
    /// `Date`; the time of receipt if it is missing or invalid (RFC 9110 §6.6.1).
    public let date: WallTime
    /// `Last-Modified`; nil if it is missing or invalid.
    public let lastModified: WallTime?
    /// The age of the response on arrival (RFC 9111 §4.2.3).
    public let correctedInitialAge: Duration
    /// When the response arrived.
    public let responseTime: WallTime
    /// `Pragma: no-cache`, which some origins send instead of `Cache-Control`.
    public let hasPragmaNoCache: Bool
    /// Whether there is an `ETag` or a valid `Last-Modified` for validation.
    public let hasValidator: Bool
    /// Whether the response may have been made for one client: it sets a cookie, or its request had
    /// one.
    public let isPersonal: Bool

    /// Parses the fields of a response.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - fields: the header fields.
    ///   - requestTime: when the request was sent.
    ///   - responseTime: when the response arrived.
    ///   - isPersonal: whether the response may have been made for one client, even if `fields` do
    ///     not show it.
    public init(
        status: Int,
        fields: HTTPFields,
        requestTime: WallTime,
        responseTime: WallTime,
        isPersonal: Bool = false
    ) {
        let parse = { (text: String) in HTTPDate.parse(text, now: responseTime) }
        self.status = status
        self.cacheControl = ResponseCacheControl(in: fields)
        self.targetedControl = TargetedCacheControl.parse(fields)
        self.expires =
            fields.value(of: .expires).map { parse($0).map(Expires.at) ?? .invalid } ?? .absent
        self.date = fields.value(of: .date).flatMap(parse) ?? responseTime
        self.lastModified = fields.value(of: .lastModified).flatMap(parse)
        self.correctedInitialAge = CurrentAge.initial(
            ageValue: fields.value(of: .age).flatMap(CurrentAge.parse),
            date: date,
            requestTime: requestTime,
            responseTime: responseTime
        )
        self.responseTime = responseTime
        self.hasPragmaNoCache =
            !fields.contains(.cacheControl) && RequestCacheControl(in: fields).noCache
        self.hasValidator = fields.contains(.eTag) || lastModified != nil
        self.isPersonal = isPersonal || fields.contains(.setCookie)
    }

    /// The directives that a cache obeys.
    public func control(_ rules: CacheRules) -> ResponseCacheControl {
        rules.isShared ? targetedControl ?? cacheControl : cacheControl
    }
}
