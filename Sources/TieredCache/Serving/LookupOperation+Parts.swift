import HTTPCaching
import HTTPTypes

/// A part by itself that answers a request.
struct StoredPart: Sendable {
    let head: StoredResponse
    let entry: DiskEntry
    let content: StandalonePart
    /// The bytes of the representation that answer; nil where the whole 206 does, as it came.
    let bytes: Range<Int64>?
    let decision: ReuseDecision

    /// Whether it was made after another one, as far as the origin says.
    func isNewer(_ other: StoredPart) -> Bool {
        (head.facts.date, head.responseTime) > (other.head.facts.date, other.head.responseTime)
    }
}

extension LookupOperation {
    /// A part by itself that has all that is wanted and may be used, where what is stored has not.
    func part(insteadOf stored: StoredEntry?) async throws(CacheError) -> StoredPart? {
        guard request.method == .get, request.isCacheable, !request.isPinned,
            !request.isPrefetch, let wanted = request.wantedOfPart
        else { return nil }
        // What can be completed is: no need to look for parts.
        if let stored, stored.head.validator != nil { return nil }
        var newest: StoredPart?
        for key in request.key.parts {
            guard let entry = try await storage.entry(for: key, isUse: false),
                let part = part(entry, wanted), newest.map(part.isNewer) ?? true
            else { continue }
            newest = part
        }
        guard let newest, !isBetter(stored, than: newest) else { return nil }
        // For the order of use.
        _ = try await storage.entry(for: newest.entry.key, isUse: true)
        return newest
    }

    /// Whether what is stored under the key itself, and cannot be completed, is to answer.
    private func isBetter(_ stored: StoredEntry?, than part: StoredPart) -> Bool {
        guard let stored else { return false }
        // Of several the most recent counts (RFC 9111 §4).
        guard stored.head.responseTime <= part.head.responseTime else { return true }
        let bytes = part.bytes ?? 0..<(stored.completeLength ?? .max)
        return stored.contains(WantedRange(bytes))
    }

    private func part(_ entry: DiskEntry, _ wanted: CacheRequest.WantedOfPart) -> StoredPart? {
        guard let length = entry.completeLength,
            let head = StoredResponse(encoded: entry.metadata), head.mayAnswer(request)
        else { return nil }
        let content = StandalonePart(fields: head.fields, length: length)
        var bytes: Range<Int64>?
        if let range = content.range {
            // The unsealed end of a fill goes with it, and nothing can be fetched in its place.
            guard let spec = wanted.spec, let inside = content.bytes(for: spec) else { return nil }
            let place = inside.lowerBound - range.lowerBound..<inside.upperBound - range.lowerBound
            guard entry.nextGap(in: place) == nil else { return nil }
            bytes = inside
        } else {
            // Its selecting fields have the range, so that only the same request matches.
            guard entry.isComplete else { return nil }
        }
        let decision = judge.decision(about: head, for: request)
        guard decision.action == .use else { return nil }
        return StoredPart(
            head: head,
            entry: entry,
            content: content,
            bytes: bytes,
            decision: decision
        )
    }
}

extension CacheRequest {
    /// Which part a request asks for; without a `spec` one that only the same request names.
    struct WantedOfPart {
        let spec: ByteRangeSpec?
    }

    /// nil for a request for the whole, and for conditions, which are about the whole.
    fileprivate var wantedOfPart: WantedOfPart? {
        guard relay != nil else { return range.map { WantedOfPart(spec: $0) } }
        guard let text = fields[.range], !fields.hasPrecondition else { return nil }
        let asked = RangeRequest(text)
        return WantedOfPart(spec: asked?.specs.count == 1 ? asked?.specs.first : nil)
    }
}
