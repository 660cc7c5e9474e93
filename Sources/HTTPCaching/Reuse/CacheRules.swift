/// Whose cache this is, and what it assumes where the origin says nothing.
public struct CacheRules: Hashable, Sendable {
    /// Whether several users share the cache; by default not (RFC 9111 §1).
    public var isShared: Bool
    /// The lifetime of a response without explicit freshness, set by the application; by default
    /// nil, so that a tenth of the response's apparent age is taken (RFC 9111 §4.2.2).
    public var applicationLifetime: Duration?
    /// The most that a heuristic lifetime may be, by default 7 days.
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
