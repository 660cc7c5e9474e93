import HTTPCaching
public import HTTPTypes

/// What is known about one entry of the disk tier.
public struct EntrySummary: Sendable {
    /// The whole key.
    public let key: CacheKey
    /// The URL that was asked for; empty if the entry's head cannot be read.
    public let url: String
    /// The name that the application gave the entry, if it did.
    public let keyName: String?
    /// The stored status; 0 if the entry's head cannot be read.
    public let status: Int
    /// The stored fields.
    public let fields: HTTPFields
    /// The length of the whole body; nil while the origin has not told.
    public let length: Int64?
    /// Body bytes held.
    public let heldBytes: Int64
    /// Whether all of the body is held.
    public let isComplete: Bool
    /// Whether eviction spares the entry.
    public let isPinned: Bool

    init(_ summary: DiskEntrySummary) {
        self.init(
            summary.key,
            metadata: summary.metadata,
            length: summary.completeLength,
            held: summary.heldBytes,
            isComplete: summary.isComplete,
            isPinned: summary.isPinned
        )
    }

    init(_ entry: DiskEntry) {
        self.init(
            entry.key,
            metadata: entry.metadata,
            length: entry.completeLength,
            held: entry.heldRanges.count,
            isComplete: entry.isComplete,
            isPinned: entry.isPinned
        )
    }

    private init(
        _ key: CacheKey,
        metadata: [UInt8],
        length: Int64?,
        held: Int64,
        isComplete: Bool,
        isPinned: Bool
    ) {
        let head = StoredResponse(encoded: metadata)
        self.key = key
        url = head?.origin.url ?? ""
        keyName = head?.origin.keyName
        status = head?.status ?? 0
        fields = head?.fields ?? [:]
        self.length = length
        heldBytes = held
        self.isComplete = isComplete
        self.isPinned = isPinned
    }
}
