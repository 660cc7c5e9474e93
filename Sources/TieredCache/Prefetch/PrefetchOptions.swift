/// How much is fetched of what may come next, and when.
public struct PrefetchOptions: Hashable, Sendable {
    /// How much of the head of each item to take, in bytes; 800 KB by default.
    ///
    /// Where the item is an ISO base media file whose `moov` lies behind that, `moov` is fetched
    /// too, within 1 MiB.
    public var headBytes: Int64 = 800_000
    /// What must lie ahead of what plays before anything is fetched, in time; 20 s by default.
    ///
    /// Below half of it, prefetches under way are cancelled; what they have brought stays.
    public var enoughDuration: Duration = .seconds(20)
    /// The same in bytes, for players that do not know times; 4 MiB by default.
    public var enoughBytes: Int64 = 4 << 20
    /// The most that the items of one ranking may cost together, in bytes; 16 MiB by default.
    public var budget: Int64 = 16 << 20
    /// How many items are fetched at once; 2 by default.
    public var maximumRunning = 2

    /// A rest of the budget below this is not worth a request.
    var leastBytes: Int64 { min(headBytes, 64 << 10) }

    /// Creates the default options.
    public init() {}
}

/// What a player has ahead of the place that it plays.
public enum PlaybackReserve: Hashable, Sendable {
    /// Nothing plays, so nothing can be disturbed.
    case nothingPlaying
    /// It can play for so long without the network.
    case duration(Duration)
    /// So many bytes ahead are stored.
    case bytes(Int64)
}
