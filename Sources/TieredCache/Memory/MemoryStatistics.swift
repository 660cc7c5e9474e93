/// What a memory cache has done since it was made, and what it holds now.
public struct MemoryStatistics: Hashable, Sendable {
    /// Lookups that found a value.
    public internal(set) var hits = 0
    /// Lookups that found none, or an expired one.
    public internal(set) var misses = 0
    /// Values taken in, replacements included.
    public internal(set) var insertions = 0
    /// Values refused because their cost was too high.
    public internal(set) var refusals = 0
    /// Entries that left, by cause.
    public internal(set) var removals: [RemovalCause: Int] = [:]
    /// The entries stored.
    public internal(set) var count = 0
    /// The sum of the costs of the entries stored.
    public internal(set) var cost = 0
    /// The present limit on the cost; below the configured one under memory pressure.
    public internal(set) var costLimit = 0

    /// The part of the lookups that found a value; 0 before the first.
    public var hitRatio: Double {
        hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses)
    }
}
