/// What the reader of an entry begins with.
struct EntryOpening: Sendable {
    /// What is read.
    let entry: DiskEntry
    /// What the entry belongs to; its threads read the disk.
    let storage: Storage
    /// Fetches what is missing; nil where the origin must not be asked.
    var fetcher: GapFetcher?
    /// A transfer that is under way for the first missing byte.
    var transfer: Subscription?
    /// What was stored before that transfer began; nil for what is stored now.
    var storedBefore: ByteRangeSet?
    /// Without a fetcher, whether another request would be answered by the origin.
    var mayStartAgain = false
}
