/// What a memory cache has done since it was made, and what it holds now.
package struct MemoryStatistics: Hashable, Sendable {
    /// Lookups that found a value.
    package internal(set) var hits = 0
    /// Lookups that found none, or an expired one.
    package internal(set) var misses = 0
    /// Values taken in, replacements included.
    package internal(set) var insertions = 0
    /// Values refused because their cost was too high.
    package internal(set) var refusals = 0
    /// Entries that left, by cause.
    package internal(set) var removals: [RemovalCause: Int] = [:]
    /// The entries stored.
    package internal(set) var count = 0
    /// The sum of the costs of the entries stored.
    package internal(set) var cost = 0
    /// The present limit on the cost; below the configured one under memory pressure.
    package internal(set) var costLimit = 0

    /// The part of the lookups that found a value; 0 before the first.
    package var hitRatio: Double {
        hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses)
    }
}
