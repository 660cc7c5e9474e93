import HTTPTypes

/// Whether a response may be stored (RFC 9111 §3).
public enum Storability: Hashable, Sendable {
    /// It may.
    case storable
    /// It may not.
    case notStorable(Reason)

    /// Why a response may not be stored.
    public enum Reason: String, Hashable, Sendable {
        /// Only a GET without content is stored, and what the application gives a key of its own.
        case method
        /// Not a final response, or one whose caching rules are unknown.
        case status
        /// An error that the request itself may have caused, by a condition, a range, an
        /// expectation, its size or its haste.
        case causedByRequest = "caused-by-request"
        /// `no-store` in the request (§5.2.1.5).
        case requestNoStore = "request-no-store"
        /// `no-store` in the response (§5.2.2.5).
        case responseNoStore = "response-no-store"
        /// `private`, and this is a shared cache (§5.2.2.7).
        case isPrivate = "private"
        /// Credentials, a shared cache, and no leave from the origin (§3.5).
        case authorization
        /// The status needs explicit freshness, or an error has no freshness at all.
        case freshness
        /// A part that could never be joined with another (§3.4).
        case partial
    }

    /// Decides about a response.
    ///
    /// A complete response of a heuristically cacheable status is storable without freshness and
    /// validator: it must not be reused by the protocol's rules, but the application's policies
    /// and an interrupted download can use it. An error is kept only while it is fresh.
    ///
    /// - Parameters:
    ///   - response: the response.
    ///   - request: the request it answers.
    ///   - hasExplicitKey: whether the application names the entry itself; then any method is
    ///     stored, since what tells two requests apart is in the key.
    ///   - isBypassed: whether the answer is for this request alone, because it has content whose
    ///     meaning only the origin knows.
    ///   - isSelective: whether the client has put a condition or a range into the request.
    ///   - canCombine: for a 206: whether it has a valid `Content-Range` and a strong validator.
    ///   - rules: whose cache this is.
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
        guard hasStorableStatus(response, control) else { return .notStorable(.status) }
        guard !isCausedByRequest(response.status, isSelective) else {
            return .notStorable(.causedByRequest)
        }
        guard response.status != 206 || canCombine else { return .notStorable(.partial) }
        guard !request.cacheControl.noStore else { return .notStorable(.requestNoStore) }
        // Who understands the status may pass over the no-store beside must-understand.
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

    /// Whether another request for the same target might get something else than this error.
    ///
    /// Conditions and ranges are looked at only where there would be a 200 (RFC 9110 §13.2.1,
    /// §14.2), but not every origin keeps to that. What a cache may guess a lifetime for is about
    /// the target alone.
    private static func isCausedByRequest(_ status: Int, _ isSelective: Bool) -> Bool {
        StatusCode.isCausedByRequest(status)
            || isSelective && status >= 400 && !StatusCode.isHeuristicallyCacheable(status)
    }

    private static func hasStorableStatus(
        _ response: ResponseFacts,
        _ control: ResponseCacheControl
    ) -> Bool {
        guard (200...599).contains(response.status), response.status != 304 else { return false }
        let mustUnderstand = control.has(.mustUnderstand)
        return !mustUnderstand || StatusCode.isUnderstood(response.status)
    }

    /// Whether a response to a request with credentials is for others too (RFC 9111 §3.5).
    ///
    /// - Parameter control: what the response says.
    /// - Returns: whether it may be reused without the same credentials.
    public static func allowsAuthorized(_ control: ResponseCacheControl) -> Bool {
        control.has(.isPublic) || control.has(.mustRevalidate) || control.sharedMaxAge != nil
    }

    /// The last condition of RFC 9111 §3: something that says the response is meant to be kept.
    ///
    /// `s-maxage` counts in a private cache too, which may store whatever a shared one may.
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
