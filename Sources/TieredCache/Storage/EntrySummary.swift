public import HTTPCaching
public import HTTPTypes

/// One entry of the disk tier.
public struct EntrySummary: Sendable {
    /// The whole key.
    public let key: CacheKey
    /// The URL that was asked for; empty if the entry's head cannot be read.
    public let url: String
    /// The name that the application gave the entry, if it did.
    public let explicitKey: String?
    /// The stored status; 0 if the entry's head cannot be read.
    public let status: Int
    /// The stored fields.
    public let fields: HTTPFields
    /// The length of the whole body; nil while the origin has not sent it.
    public let length: Int64?
    /// Body bytes stored.
    public let storedBytes: Int64
    /// Whether all of the body is stored.
    public let isComplete: Bool
    /// The bytes of the body that are stored, as offsets in it, in ascending order.
    public let storedRanges: [Range<Int64>]
    /// Whether eviction spares the entry.
    public let isPinned: Bool
    /// Whether it was prefetched and not used since: evicted first.
    public let isPrefetched: Bool
    /// Whether a guest, another process that reads along, has the body open; nil where it was not
    /// checked.
    public let isOpenElsewhere: Bool?
    /// When it was last used, in seconds since 1970; nil if that was not written down yet.
    public let lastUse: Int64?
    /// How long it is fresh, counted as ``age(at:)`` is; nil if the entry's head cannot be read.
    public let freshnessLifetime: Duration?
    /// The strong validator by which an interrupted download goes on; nil if there is none.
    public let validator: String?
    private let facts: ResponseFacts?

    /// How long ago the origin made or confirmed it (RFC 9111 §4.2.3); nil if the entry's head
    /// cannot be read.
    public func age(at now: WallTime) -> Duration? {
        facts.map { CurrentAge.of($0, at: now) }
    }

    init(_ summary: DiskEntrySummary) {
        self.init(
            summary.key,
            metadata: summary.metadata,
            length: summary.completeLength,
            stored: summary.storedRanges,
            isComplete: summary.isComplete,
            isPinned: summary.isPinned,
            isPrefetched: summary.isPrefetched,
            isOpenElsewhere: nil,
            lastUse: summary.lastUse
        )
    }

    init(_ entry: DiskEntry) {
        self.init(
            entry.key,
            metadata: entry.metadata,
            length: entry.completeLength,
            stored: entry.storedRanges.ranges,
            isComplete: entry.isComplete,
            isPinned: entry.isPinned,
            isPrefetched: entry.isPrefetched && entry.writtenUse == nil,
            isOpenElsewhere: entry.isOpenElsewhere,
            lastUse: entry.writtenUse
        )
    }

    private init(
        _ key: CacheKey,
        metadata: [UInt8],
        length: Int64?,
        stored: [Range<Int64>],
        isComplete: Bool,
        isPinned: Bool,
        isPrefetched: Bool,
        isOpenElsewhere: Bool?,
        lastUse: Int64?
    ) {
        let head = StoredResponse(encoded: metadata)
        self.key = key
        url = head?.origin.url ?? ""
        explicitKey = head?.origin.explicitKey
        status = head?.status ?? 0
        fields = head?.fields ?? [:]
        self.length = length
        storedRanges = stored
        storedBytes = stored.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        self.isComplete = isComplete
        self.isPinned = isPinned
        self.isPrefetched = isPrefetched
        self.isOpenElsewhere = isOpenElsewhere
        self.lastUse = lastUse
        validator = head?.validator?.fieldValue
        facts = head?.facts
        freshnessLifetime = head.map {
            FreshnessLifetime(of: $0.facts, rules: CacheRules()).duration
        }
    }
}
