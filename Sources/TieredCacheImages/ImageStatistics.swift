/// What a pipeline has done since it was made.
public struct ImageStatistics: Hashable, Sendable {
    /// Pictures that were in memory when they were asked for.
    public var memoryHits = 0
    /// Pictures that somebody had to wait for.
    public var memoryMisses = 0
    /// Bodies that were answered without the origin.
    public var bodiesFromCache = 0
    /// Bodies for which the origin was asked.
    public var bodiesFromOrigin = 0
    /// Pictures that were decoded.
    public var decoded = 0
    /// Pictures that could not be fetched or decoded.
    public var failed = 0
    /// Pictures that nobody waited for any more before they were there.
    public var abandoned = 0

    /// Creates what a pipeline begins with.
    public init() {}

    /// The share of pictures that were in memory; nil before the first one.
    public var memoryHitRatio: Double? {
        let all = memoryHits + memoryMisses
        return all > 0 ? Double(memoryHits) / Double(all) : nil
    }
}
