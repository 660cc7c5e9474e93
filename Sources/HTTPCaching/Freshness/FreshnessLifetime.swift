/// The freshness lifetime: how long a response may be used without validation (RFC 9111 §4.2.1,
/// §4.2.2).
public struct FreshnessLifetime: Hashable, Sendable {
    /// Where the lifetime comes from.
    public enum Source: Hashable, Sendable {
        /// `s-maxage`, `max-age` or `Expires`: set by the origin.
        case explicit
        /// Set by the application for responses without explicit freshness.
        case application
        /// A tenth of the time since the last modification.
        case heuristic
        /// No source applies: the lifetime is zero.
        case none
    }

    /// The lifetime, never negative.
    public let duration: Duration
    /// Where it comes from.
    public let source: Source

    /// The lifetime of a response.
    ///
    /// The first of these that is available: `s-maxage` in a shared cache, `max-age`, `Expires` −
    /// `Date`, the application's lifetime, a tenth of `Date` − `Last-Modified`. The last two apply
    /// only to a status that RFC 9110 §15.1 calls heuristically cacheable, or with `public`, and
    /// never to a response that may have been made for one client (``ResponseFacts/isPersonal``).
    /// The application's lifetime does not apply to errors, which should not outlive their cause.
    public init(of response: ResponseFacts, rules: CacheRules) {
        if let explicit = Self.explicit(response, rules: rules) {
            self.init(duration: max(.zero, explicit), source: .explicit)
            return
        }
        let isCacheable =
            StatusCode.isHeuristicallyCacheable(response.status)
            || response.control(rules).has(.isPublic)
        guard isCacheable, !response.hasPragmaNoCache, !response.isPersonal else {
            self.init(duration: .zero, source: .none)
            return
        }
        if let lifetime = rules.applicationLifetime, response.status < 400 {
            self.init(duration: max(.zero, lifetime), source: .application)
            return
        }
        guard let modified = response.lastModified else {
            self.init(duration: .zero, source: .none)
            return
        }
        // RFC 9111 §4.2.2 calls this fraction typical.
        let tenth = max(.zero, modified.duration(to: response.date)) / 10
        self.init(duration: min(tenth, rules.maximumHeuristicLifetime), source: .heuristic)
    }

    private init(duration: Duration, source: Source) {
        self.duration = duration
        self.source = source
    }

    private static func explicit(_ response: ResponseFacts, rules: CacheRules) -> Duration? {
        let control = response.control(rules)
        if rules.isShared, let seconds = control.sharedMaxAge {
            return .seconds(seconds)
        }
        if let seconds = control.maxAge {
            return .seconds(seconds)
        }
        // A cache that obeys targeted directives ignores `Expires` (RFC 9213 §2.2).
        if rules.isShared, response.targetedControl != nil { return nil }
        switch response.expires {
        case .absent: return nil
        // RFC 9111 §5.3: an invalid date, `0` above all, is one in the past.
        case .invalid: return .zero
        // Against `Date` and not our time: both are of the clock of the origin.
        case .at(let time): return response.date.duration(to: time)
        }
    }
}
