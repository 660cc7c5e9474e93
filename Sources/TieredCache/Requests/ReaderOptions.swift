/// How a ``CacheReader`` reads.
public struct ReaderOptions: Hashable, Sendable {
    /// How long a read tries before it fails; 30 s by default.
    public var deadline: Duration = .seconds(30)
    /// The maximum number of bytes fetched ahead of the consumer; 8 MiB by default.
    ///
    /// A reader stays within two more bounds: a quarter of the bytes read in a row, or stored in a
    /// row in front of them, plus 64 KiB, and the bytes of ten seconds at the average speed of the
    /// consumer, or 128 KiB if that is more.
    /// The first of them does not apply where the end of reading is known. The latency of the
    /// origin plays no part: after more than 2 MiB read in a row a request stays open, and pauses
    /// where nothing more is wanted yet. A value below 64 KiB fetches nothing ahead.
    public var maximumReadAhead: Int64 = 8 << 20
    /// The number of positions followed at once, for files with distant streams; 4 by default.
    public var windows = 4

    /// Creates the default options.
    public init() {}
}
