/// Whether a stored response may answer a request (RFC 9111 §4).
///
/// A decision allocates nothing.
public struct ReuseDecision: Hashable, Sendable {
    /// What to do.
    public enum Action: Hashable, Sendable {
        /// Use the stored response.
        case use
        /// Use the stored response, and validate it in the background (RFC 5861 §3).
        case useAndRevalidate
        /// Ask the origin with a conditional request.
        case validate
        /// Forward the request as if nothing were stored.
        case forward
        /// Neither use the stored response nor ask the origin: 504 (RFC 9111 §5.2.1.7).
        case refuse
    }

    /// Why.
    public enum Reason: Hashable, Sendable {
        /// The response is fresh.
        case fresh
        /// The response is stale.
        case stale
        /// Stale, but not longer than the request's `max-stale`.
        case maxStale
        /// Stale, but not longer than `stale-while-revalidate`.
        case staleWhileRevalidate
        /// The application's policy.
        case policy
        /// The request's `no-cache`, `max-age` or `min-fresh`.
        case request
        /// The response's `no-cache`.
        case noCache
        /// An unsafe request changed what the response was about (RFC 9111 §4.4).
        case invalidated
        /// The request differs in a field that `Vary` names.
        case varyMiss
    }

    /// The failures of the origin for which the stored response may be served instead.
    public enum StaleOnError: Hashable, Sendable {
        /// None.
        case never
        /// The origin cannot be reached (RFC 9111 §4.2.4).
        case disconnected
        /// The origin cannot be reached, or responds with 500, 502, 503 or 504 (RFC 5861 §4).
        case error
    }

    /// What to do.
    public let action: Action
    /// Why.
    public let reason: Reason
    /// How long the response stays fresh; if negative, how long it has been stale.
    ///
    /// This is the `ttl` of RFC 9211.
    public let timeToLive: Duration
    /// The failures for which the response may be served instead; for ``Action/validate``.
    public let staleOnError: StaleOnError

    /// Whether the stored response is older than its lifetime.
    ///
    /// RFC 9111 §4.2: fresh only while the lifetime exceeds the age.
    public var isStale: Bool { timeToLive <= .zero }

    /// Decides about a stored response.
    ///
    /// - Parameters:
    ///   - stored: the stored response.
    ///   - request: the request to answer.
    ///   - matchesVary: whether the fields named by `Vary` agree; see ``VaryMatch``.
    ///   - isInvalidated: whether an unsafe request made the response unusable.
    ///   - rules: the rules of the cache.
    ///   - now: the present.
    public init(
        stored: ResponseFacts,
        request: RequestFacts,
        matchesVary: Bool = true,
        isInvalidated: Bool = false,
        rules: CacheRules,
        now: WallTime
    ) {
        let lifetime = FreshnessLifetime(of: stored, rules: rules)
        let context = ReuseContext(
            stored: stored.control(rules),
            request: request.cacheControl,
            rules: rules,
            age: CurrentAge.of(stored, at: now),
            lifetime: lifetime.duration,
            isInvalidated: isInvalidated
        )
        let choice = context.choice(policy: request.policy, matchesVary: matchesVary)
        let refuses = request.cacheControl.onlyIfCached || request.policy == .cacheOnly
        switch choice.action {
        case .validate where refuses, .forward where refuses: action = .refuse
        // Validation in the background would be a request, too.
        case .useAndRevalidate where refuses: action = .use
        default: action = choice.action
        }
        reason = choice.reason
        timeToLive = context.timeToLive
        staleOnError = action == .validate ? context.staleOnError(reason) : .never
    }
}

/// The values that a decision depends on.
private struct ReuseContext {
    let stored: ResponseCacheControl
    let request: RequestCacheControl
    let rules: CacheRules
    let age: Duration
    let lifetime: Duration
    let isInvalidated: Bool

    typealias Choice = (action: ReuseDecision.Action, reason: ReuseDecision.Reason)

    var timeToLive: Duration { lifetime - age }

    func choice(policy: CachePolicy, matchesVary: Bool) -> Choice {
        guard policy != .reload else { return (.forward, .policy) }
        // Before the policies: at no age is another variant the response to this request.
        guard matchesVary else { return (.forward, .varyMiss) }
        switch policy {
        case .cacheElseLoad, .cacheOnly: return (.use, timeToLive > .zero ? .fresh : .policy)
        case .protocolDefault, .reload: return protocolChoice
        }
    }

    private var protocolChoice: Choice {
        guard !isInvalidated else { return (.validate, .invalidated) }
        guard !request.noCache else { return (.validate, .request) }
        guard !stored.has(.noCache) else { return (.validate, .noCache) }
        guard isYoungEnough else { return (.validate, .request) }
        if timeToLive > .zero {
            let isFreshEnough = timeToLive >= .seconds(request.minFresh ?? 0)
            return isFreshEnough ? (.use, .fresh) : (.validate, .request)
        }
        guard !forbidsStale, request.minFresh == nil else { return (.validate, .stale) }
        switch request.maxStale {
        case .any: return (.use, .maxStale)
        case .seconds(let seconds) where staleness <= .seconds(seconds): return (.use, .maxStale)
        default: break
        }
        let window = stored.staleWhileRevalidate ?? 0
        guard window > 0, staleness <= .seconds(window) else { return (.validate, .stale) }
        return (.useAndRevalidate, .staleWhileRevalidate)
    }

    /// Whether the request's `max-age` allows the age; zero allows none.
    ///
    /// A fresh immutable response is not validated because of its age alone (RFC 8246 §2).
    private var isYoungEnough: Bool {
        guard let maxAge = request.maxAge else { return true }
        if stored.has(.immutable), timeToLive > .zero {
            return true
        }
        return maxAge > 0 && age <= .seconds(maxAge)
    }

    private var staleness: Duration { max(.zero, age - lifetime) }

    /// Whether the response must not be served stale, even disconnected (RFC 9111 §4.2.4).
    private var forbidsStale: Bool {
        if stored.has(.mustRevalidate) || stored.has(.noCache) {
            return true
        }
        // RFC 9111 §5.2.2.10: `s-maxage` implies `proxy-revalidate`.
        return rules.isShared && (stored.has(.proxyRevalidate) || stored.sharedMaxAge != nil)
    }

    func staleOnError(_ reason: ReuseDecision.Reason) -> ReuseDecision.StaleOnError {
        guard !request.noCache, reason != .noCache, !isInvalidated else { return .never }
        // Still fresh: the request alone wanted a validation, and its failure proves nothing.
        guard timeToLive <= .zero else { return .error }
        guard !forbidsStale else { return .never }
        // The longer of the request's and the response's window counts (RFC 5861 §4).
        let window = max(stored.staleIfError ?? 0, request.staleIfError ?? 0)
        // RFC 9111 §4.2.4: while disconnected, stale responses need no directive.
        return window > 0 && staleness <= .seconds(window) ? .error : .disconnected
    }
}
