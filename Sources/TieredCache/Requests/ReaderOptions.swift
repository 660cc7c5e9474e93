/// How a ``CacheReader`` reads.
public struct ReaderOptions: Hashable, Sendable {
    /// How long a read tries before it fails; 30 s by default.
    public var deadline: Duration = .seconds(30)
    /// The maximum number of bytes fetched ahead of the consumer; 8 MiB by default.
    ///
    /// A reader fetches ahead a quarter of the bytes read in a row, or as many as last ten seconds
    /// at the speed of the consumer, whichever is less; if a round trip to the origin takes 30 ms
    /// or more, the bandwidth-delay product, up to all bytes read in a row. 0 fetches nothing
    /// ahead.
    public var maximumReadAhead: Int64 = 8 << 20
    /// The number of positions followed at once, for files with distant streams; 4 by default.
    public var windows = 4

    /// Creates the default options.
    public init() {}
}
