import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// What a lookup found in a tier, whole or in part.
struct HeldResponse: Sendable {
    enum Body: Sendable {
        case memory(MemoryEntry)
        case disk(DiskEntry)
    }

    /// Under which it is held: of several variants, that of the one selected.
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

    /// What holds it on disk; nil for the memory tier.
    var diskEntry: DiskEntry? {
        guard case .disk(let entry) = body else { return nil }
        return entry
    }

    /// The length of the whole body; nil while the origin has not told.
    var completeLength: Int64? {
        switch body {
        case .memory(let entry): Int64(entry.body.count)
        case .disk(let entry): entry.completeLength
        }
    }

    /// Whether a 304 could make it the answer to a request for the whole.
    var isOfferable: Bool {
        head.status == 200 && head.fields.contains(.eTag)
            && holds(WantedRange(start: 0, end: completeLength))
    }

    /// Whether all of `range` can be read without the origin.
    func holds(_ range: WantedRange) -> Bool {
        switch body {
        case .memory:
            return true
        case .disk(let entry):
            if entry.isComplete { return true }
            guard let end = range.end else { return false }
            guard range.start < end else { return true }
            return entry.held(at: range.start).map { $0.upperBound >= end } ?? false
        }
    }
}

/// The bytes that a reader wants, resolved as far as the complete length is known.
struct WantedRange: Hashable, Sendable {
    /// The first byte.
    var start: Int64
    /// The offset after the last byte; nil: to an end that is not known yet.
    var end: Int64?

    /// Resolves what was asked for against what is known.
    ///
    /// - Returns: nil for a suffix of a representation whose length is not known.
    /// - Throws: `.rangeNotSatisfiable` if not one byte of the range exists.
    static func resolve(
        _ request: CacheRequest,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        guard let spec = request.range else { return WantedRange(start: 0, end: completeLength) }
        guard let completeLength else { return unresolved(spec) }
        guard let range = spec.resolved(completeLength: completeLength) else {
            throw CacheError(
                .rangeNotSatisfiable,
                "bytes \(spec.fieldValue) of \(request.target.redacted) do not exist: "
                    + "it has \(completeLength) bytes"
            )
        }
        return WantedRange(start: range.lowerBound, end: range.upperBound)
    }

    /// Resolves what was asked for against a response that came through as it is.
    ///
    /// A range is one of a 200 whose length is known; any other answer is delivered whole.
    static func resolve(
        _ request: CacheRequest,
        _ head: StoredResponse,
        completeLength: Int64?
    ) throws(CacheError) -> WantedRange? {
        guard request.relay != nil, head.status != 200 || completeLength == nil else {
            return try resolve(request, completeLength: completeLength)
        }
        return WantedRange(start: 0, end: completeLength)
    }

    private static func unresolved(_ spec: ByteRangeSpec) -> WantedRange? {
        switch spec {
        case .bounded(let range): WantedRange(start: range.lowerBound, end: range.upperBound)
        case .openEnded(let start): WantedRange(start: start, end: nil)
        case .suffix: nil
        }
    }
}
