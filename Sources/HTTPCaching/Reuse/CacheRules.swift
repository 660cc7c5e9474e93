/// The kind of cache, and its lifetimes for responses without explicit freshness.
public struct CacheRules: Hashable, Sendable {
    /// Whether several users share the cache; false by default (RFC 9111 §1).
    public var isShared: Bool
    /// The lifetime of a response without explicit freshness, set by the application; by default
    /// nil, so that a tenth of the time since the last modification is used (RFC 9111 §4.2.2).
    public var applicationLifetime: Duration?
    /// The longest heuristic lifetime, by default 7 days.
    public var maximumHeuristicLifetime: Duration

    /// Creates rules.
    public init(
        isShared: Bool = false,
        applicationLifetime: Duration? = nil,
        maximumHeuristicLifetime: Duration = .seconds(7 * 86_400)
    ) {
        self.isShared = isShared
        self.applicationLifetime = applicationLifetime
        self.maximumHeuristicLifetime = maximumHeuristicLifetime
    }
}
