import HTTPCaching
import HTTPTypes

/// The result of a lookup in a tier: a stored response, whole or in part.
struct StoredEntry: Sendable {
    enum Body: Sendable {
        case memory(MemoryEntry)
        case disk(DiskEntry)
    }

    /// The key that it is stored under: of several variants, that of the one selected.
    let key: CacheKey
    let head: StoredResponse
    let body: Body

    init(_ entry: MemoryEntry, key: CacheKey) {
        self.key = key
        head = entry.head
        body = .memory(entry)
    }

    init(head: StoredResponse, entry: DiskEntry) {
        key = entry.key
        self.head = head
        body = .disk(entry)
    }

    var tier: MediaCache.Event.Tier {
        switch body {
        case .memory: .memory
        case .disk: .disk
        }
    }

    /// The entry on disk; nil for the memory tier.
    var diskEntry: DiskEntry? {
        guard case .disk(let entry) = body else { return nil }
        return entry
    }

    /// The length of the whole body; nil while the origin has not sent it.
    var completeLength: Int64? {
        switch body {
        case .memory(let entry): Int64(entry.body.count)
        case .disk(let entry): entry.completeLength
        }
    }

    /// Whether a 304 could make it the response to a request for the whole.
    var isOfferable: Bool {
        head.status == 200 && head.fields.contains(.eTag)
            && contains(WantedRange(start: 0, end: completeLength))
    }

    /// Whether all of `range` can be read without the origin.
    func contains(_ range: WantedRange) -> Bool {
        switch body {
        case .memory:
            return true
        case .disk(let entry):
            if entry.isComplete { return true }
            guard let end = range.end else { return false }
            guard range.start < end else { return true }
            return entry.storedRange(at: range.start).map { $0.upperBound >= end } ?? false
        }
    }
}
