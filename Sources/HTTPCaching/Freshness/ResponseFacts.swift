public import HTTPTypes

/// What the fields of a response say about caching, parsed once and kept with the entry.
///
/// Every decision is made from these values alone and allocates nothing.
public struct ResponseFacts: Hashable, Sendable {
    /// What `Expires` says (RFC 9111 §5.3).
    public enum Expires: Hashable, Sendable {
        /// No such field.
        case absent
        /// Anything that is no single date, such as `0`: already expired.
        case invalid
        /// A date.
        case at(WallTime)
    }

    /// The status code.
    public let status: Int
    /// The directives of `Cache-Control`.
    public let cacheControl: ResponseCacheControl
    /// The directives for shared caches alone, which they follow in place of the others (RFC 9213);
    /// nil for none.
    public let targetedControl: ResponseCacheControl?
    /// `Expires`.
    public let expires: Expires
    /// `Date`; where it is missing or no date, the time of receipt (RFC 9110 §6.6.1).
    public let date: WallTime
    /// `Last-Modified`, if it is a date.
    public let lastModified: WallTime?
    /// How old the response was when it arrived (RFC 9111 §4.2.3).
    public let correctedInitialAge: Duration
    /// When the response arrived.
    public let responseTime: WallTime
    /// `Pragma: no-cache`, which some origins send instead of `Cache-Control`.
    public let hasPragmaNoCache: Bool
    /// Whether there is an `ETag` or a `Last-Modified` to validate with.
    public let hasValidator: Bool
    /// Whether it may have been made for one client: it sets a cookie, or its request had one.
    public let isPersonal: Bool

    /// Parses the fields of a response.
    ///
    /// - Parameters:
    ///   - status: the status code.
    ///   - fields: the header fields.
    ///   - requestTime: when the request that got the response was sent.
    ///   - responseTime: when the response arrived.
    ///   - isPersonal: whether it may have been made for one client, also where `fields` do not
    ///     say so.
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
        self.expires = fields[.expires].map { parse($0).map(Expires.at) ?? .invalid } ?? .absent
        self.date = fields[.date].flatMap(parse) ?? responseTime
        self.lastModified = fields[.lastModified].flatMap(parse)
        self.correctedInitialAge = CurrentAge.initial(
            ageValue: fields[.age].flatMap(CurrentAge.parse),
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
