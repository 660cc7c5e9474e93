/// How much a prefetcher fetches, and when.
public struct PrefetchOptions: Hashable, Sendable {
    /// The bytes of each item's head to fetch; 800 KB by default.
    ///
    /// If the item is an ISO base media file with `moov` behind the head, `moov` is fetched, too,
    /// within 1 MiB.
    public var headBytes: Int64 = 800_000
    /// The playback reserve from which prefetching starts, in time; 20 s by default.
    ///
    /// Below half of it, running prefetches are cancelled; the bytes that they have stored stay.
    public var enoughDuration: Duration = .seconds(20)
    /// The same in bytes, for players that do not know times; 4 MiB by default.
    public var enoughBytes: Int64 = 4 << 20
    /// The maximum cost of all items of one ranking, in bytes; 16 MiB by default.
    public var budget: Int64 = 16 << 20
    /// The number of items fetched at once; 2 by default.
    public var maximumRunning = 2
    /// The minimum remaining budget, in bytes, that is worth a request.
    var leastBytes: Int64 { min(headBytes, 64 << 10) }
    /// Creates the default options.
    public init() {}
}

/// The media that a player has available ahead of its position.
public enum PlaybackReserve: Hashable, Sendable {
    /// The player is idle, so prefetching cannot disturb it.
    case nothingPlaying
    /// It can play for this time without the network.
    case duration(Duration)
    /// This many bytes ahead are stored.
    case bytes(Int64)
}
