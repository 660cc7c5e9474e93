/// How much a memory cache may hold.
@_spi(Benchmarks) public struct MemoryLimits: Hashable, Sendable {
    /// The largest sum of costs; for values that are bytes, a number of bytes.
    package let maximumCost: Int
    /// The largest number of entries; `nil` for no limit.
    package let maximumCount: Int?
    /// The part of ``maximumCost`` that one value may have; a value with a higher cost is refused.
    package let maximumEntryFraction: Double

    /// Validates and keeps limits.
    ///
    /// - Parameters:
    ///   - maximumCost: 1 or more, at most 2⁵⁶. There is no zero that means "unlimited" or "off".
    ///   - maximumCount: 1 or more, or `nil`.
    ///   - maximumEntryFraction: above 0 and at most 1.
    /// - Throws: ``CacheError/Code/invalidArgument`` for any other value.
    public init(
        maximumCost: Int,
        maximumCount: Int? = nil,
        maximumEntryFraction: Double = 0.1
    ) throws(CacheError) {
        guard (1...(1 << 56)).contains(maximumCost) else {
            throw CacheError(
                .invalidArgument,
                "the memory limit must be between 1 and 2^56, not \(maximumCost)"
            )
        }
        guard maximumCount ?? 1 >= 1 else {
            throw CacheError(
                .invalidArgument,
                "the limit on memory entries must be 1 or more, not \(maximumCount ?? 0)"
            )
        }
        guard maximumEntryFraction > 0, maximumEntryFraction <= 1 else {
            throw CacheError(
                .invalidArgument,
                "the fraction of the memory limit for one value must be above 0 and at most 1, "
                    + "not \(maximumEntryFraction)"
            )
        }
        self.maximumCost = maximumCost
        self.maximumCount = maximumCount
        self.maximumEntryFraction = maximumEntryFraction
    }

    /// The highest cost that one value may have.
    package var maximumEntryCost: Int {
        maximumEntryFraction == 1 ? maximumCost : Int(Double(maximumCost) * maximumEntryFraction)
    }
}
