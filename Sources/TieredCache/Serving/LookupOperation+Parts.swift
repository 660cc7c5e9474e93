import HTTPCaching
import HTTPTypes

/// A standalone part that answers a request.
struct StoredPart: Sendable {
    let head: StoredResponse
    let entry: DiskEntry
    let content: StandalonePart
    /// The bytes of the representation in the response; nil for the whole 206 as received.
    let bytes: Range<Int64>?
    let decision: ReuseDecision

    /// Whether the origin generated it after another part, by its `Date` and response time.
    func isNewer(_ other: StoredPart) -> Bool {
        (head.facts.date, head.responseTime) > (other.head.facts.date, other.head.responseTime)
    }
}

extension LookupOperation {
    /// A standalone part that has all wanted bytes and may be used, if the stored entry may not.
    func part(insteadOf stored: StoredEntry?) async throws(CacheError) -> StoredPart? {
        guard request.method == .get, request.isCacheable, !request.isPinned,
            !request.isPrefetch, let wanted = request.wantedOfPart
        else { return nil }
        // An entry with a validator can be completed: no need to look for parts.
        if let stored, stored.head.validator != nil { return nil }
        var newest: StoredPart?
        for key in request.key.parts {
            guard let entry = try await storage.entry(for: key, isUse: false),
                let part = part(from: entry, wanted: wanted), newest.map(part.isNewer) ?? true
            else { continue }
            newest = part
        }
        guard let newest, !isBetter(stored, than: newest) else { return nil }
        // Only now does the lookup count in the order of use.
        _ = try await storage.entry(for: newest.entry.key, isUse: true)
        return newest
    }

    /// Whether the entry under the primary key, which cannot be completed, answers before a part.
    private func isBetter(_ stored: StoredEntry?, than part: StoredPart) -> Bool {
        guard let stored else { return false }
        // Of several suitable responses the most recent one answers (RFC 9111 §4).
        guard stored.head.responseTime <= part.head.responseTime else { return true }
        let bytes = part.bytes ?? 0..<(stored.completeLength ?? .max)
        return stored.contains(WantedRange(bytes))
    }

    private func part(from entry: DiskEntry, wanted: CacheRequest.WantedOfPart) -> StoredPart? {
        guard let length = entry.completeLength,
            let head = StoredResponse(encoded: entry.metadata), judge.mayAnswer(request, with: head)
        else { return nil }
        let content = StandalonePart(fields: head.fields, length: length)
        var bytes: Range<Int64>?
        if let range = content.range {
            // Bytes in an unsealed block may be discarded, and no request could fetch them again.
            guard let spec = wanted.spec, let inside = content.bytes(for: spec) else { return nil }
            let place = inside.lowerBound - range.lowerBound..<inside.upperBound - range.lowerBound
            guard entry.nextGap(in: place) == nil else { return nil }
            bytes = inside
        } else {
            // The range is among its selecting fields, so only an identical request matches.
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
    /// The part that a request asks for; `spec` is nil if only an identical request can match.
    struct WantedOfPart {
        let spec: ByteRangeSpec?
    }

    /// nil for a request for the whole, and for a request with preconditions, as they need the
    /// whole.
    fileprivate var wantedOfPart: WantedOfPart? {
        guard relay != nil else { return range.map { WantedOfPart(spec: $0) } }
        guard let text = fields[.range], !fields.hasPrecondition else { return nil }
        let asked = RangeRequest(text)
        return WantedOfPart(spec: asked?.specs.count == 1 ? asked?.specs.first : nil)
    }
}
