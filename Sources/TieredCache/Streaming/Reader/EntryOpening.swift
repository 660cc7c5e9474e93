/// The initial state of an entry's reader.
struct EntryOpening: Sendable {
    /// The entry to read.
    let entry: DiskEntry
    /// The storage of the entry; its threads read the disk.
    let storage: Storage
    /// Fetches missing bytes; nil if the origin must not be asked.
    var fetcher: GapFetcher?
    /// Decides about the body; nil for bytes about which nothing is promised as a whole.
    var judge: BodyJudge?
    /// A transfer that runs for the first missing byte.
    var transfer: Subscription?
    /// The ranges stored before that transfer began; nil for those stored now.
    var storedBefore: ByteRangeSet?
}
