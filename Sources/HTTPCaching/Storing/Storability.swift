import HTTPTypes

/// Whether a response may be stored (RFC 9111 §3).
public enum Storability: Hashable, Sendable {
    /// The response may be stored.
    case storable
    /// The response must not be stored.
    case notStorable(Reason)

    /// Why a response may not be stored.
    public enum Reason: String, Hashable, Sendable {
        /// Only a GET without content is stored, and requests with an explicit key.
        case method
        /// The status is not final, or its caching rules are unknown.
        case status
        /// An error that the request itself may have caused, by a condition, a range, an
        /// expectation, its size or its rate.
        case causedByRequest = "caused-by-request"
        /// `no-store` in the request (§5.2.1.5).
        case requestNoStore = "request-no-store"
        /// `no-store` in the response (§5.2.2.5).
        case responseNoStore = "response-no-store"
        /// `private`, and this is a shared cache (§5.2.2.7).
        case isPrivate = "private"
        /// The request has credentials, the cache is shared, and the origin does not allow it
        /// (§3.5).
        case authorization
        /// The status needs explicit freshness, or an error has no freshness at all.
        case freshness
        /// A partial response that cannot be combined with others (§3.4).
        case partial
        /// A redirect has led to a host that the application leaves alone.
        case excluded
    }

    /// Decides about a response.
    ///
    /// A complete response with a heuristically cacheable status is storable without freshness and
    /// validator: the protocol does not allow its reuse, but the application's policies and an
    /// interrupted download can use it. An error is stored only if it is fresh.
    ///
    /// - Parameters:
    ///   - response: the response.
    ///   - request: the request it answers.
    ///   - hasExplicitKey: whether the application has chosen the key; then any method is stored,
    ///     because the key distinguishes requests.
    ///   - isBypassed: whether the response is for this request only, because the request has
    ///     content that the cache does not interpret.
    ///   - isSelective: whether the client's request has a condition or a range.
    ///   - canCombine: for a 206: whether it has a valid `Content-Range` and a strong validator.
    ///   - rules: the rules of the cache.
    /// - Returns: whether it may be stored, and if not, why.
    public static func decide(
        response: ResponseFacts,
        request: RequestFacts,
        hasExplicitKey: Bool = false,
        isBypassed: Bool = false,
        isSelective: Bool = false,
        canCombine: Bool = false,
        rules: CacheRules
    ) -> Storability {
        let control = response.control(rules)
        guard request.method == .get || hasExplicitKey, !isBypassed else {
            return .notStorable(.method)
        }
        guard hasStorableStatus(response, control: control) else { return .notStorable(.status) }
        guard !isCausedByRequest(status: response.status, isSelective: isSelective) else {
            return .notStorable(.causedByRequest)
        }
        guard response.status != 206 || canCombine else { return .notStorable(.partial) }
        guard !request.cacheControl.noStore else { return .notStorable(.requestNoStore) }
        // A cache that understands the status may ignore no-store beside must-understand.
        guard !control.has(.noStore) || control.has(.mustUnderstand) else {
            return .notStorable(.responseNoStore)
        }
        if rules.isShared {
            guard !control.has(.isPrivate) else { return .notStorable(.isPrivate) }
            guard !request.hasAuthorization || allowsAuthorized(control) else {
                return .notStorable(.authorization)
            }
        }
        return hasGround(response, rules: rules) ? .storable : .notStorable(.freshness)
    }

    /// Whether another request for the same target might not get this error.
    ///
    /// Conditions and ranges must be evaluated only if the response would be a 200 (RFC 9110
    /// §13.2.1, §14.2), but not every origin conforms. Heuristically cacheable errors concern the
    /// target alone.
    private static func isCausedByRequest(status: Int, isSelective: Bool) -> Bool {
        StatusCode.isCausedByRequest(status)
            || isSelective && status >= 400 && !StatusCode.isHeuristicallyCacheable(status)
    }

    private static func hasStorableStatus(
        _ response: ResponseFacts,
        control: ResponseCacheControl
    ) -> Bool {
        // A 304 changes a stored response, and is none itself (RFC 9111 §4.3.4).
        guard (200...599).contains(response.status), response.status != 304 else { return false }
        let mustUnderstand = control.has(.mustUnderstand)
        return !mustUnderstand || StatusCode.isUnderstood(response.status)
    }

    /// Whether a shared cache may store the response to a request with credentials (RFC 9111 §3.5).
    ///
    /// - Parameter control: the directives of the response.
    /// - Returns: whether it may be reused without the same credentials.
    public static func allowsAuthorized(_ control: ResponseCacheControl) -> Bool {
        control.has(.isPublic) || control.has(.mustRevalidate) || control.sharedMaxAge != nil
    }

    /// The last condition of RFC 9111 §3: the response is explicitly or heuristically cacheable.
    ///
    /// `s-maxage` counts in a private cache too, which may store everything that a shared one may.
    private static func hasGround(_ response: ResponseFacts, rules: CacheRules) -> Bool {
        let control = response.control(rules)
        let lifetime = FreshnessLifetime(of: response, rules: rules)
        guard response.status < 400 else {
            return lifetime.duration > .zero || control.sharedMaxAge ?? 0 > 0
        }
        if StatusCode.isHeuristicallyCacheable(response.status) || control.has(.isPublic) {
            return true
        }
        return lifetime.source == .explicit || control.sharedMaxAge != nil
            || (control.has(.isPrivate) && !rules.isShared)
    }
}
