/// How a ``CacheReader`` reads.
public struct ReaderOptions: Hashable, Sendable {
    /// How long a read tries before it fails; 30 s by default.
    public var deadline: Duration = .seconds(30)
    /// The most that is fetched ahead of the consumer, in bytes; 8 MiB by default.
    ///
    /// A reader fetches ahead a quarter of what was read in a row, and what lasts ten seconds at
    /// the speed of the consumer, whichever is less; where a round trip to the origin takes 30 ms
    /// and more, what the way holds, up to all that was read in a row. 0 fetches nothing ahead.
    public var maximumReadAhead: Int64 = 8 << 20
    /// How many places of one entry are followed at once, for files whose streams lie far apart;
    /// 4 by default.
    public var windows = 4

    /// Creates the default options.
    public init() {}
}
