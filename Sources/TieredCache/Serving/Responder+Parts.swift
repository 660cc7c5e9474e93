import HTTPCaching
import HTTPTypes

// Standalone parts of a representation: nothing may be combined with them (RFC 9111 §3.4).
//
// Each is an entry of its own under a key derived from the primary key, as for variants; its body
// starts at 0. It answers requests for bytes inside it while it is fresh, and is replaced, never
// completed.
extension Responder {
    /// Responds with bytes of a standalone part.
    func response(from part: StoredPart, for request: CacheRequest) -> CacheResponse {
        let length = part.entry.completeLength ?? 0
        let bytes = part.bytes ?? 0..<length
        let offset = part.content.range?.lowerBound ?? 0
        let opening = EntryOpening(
            entry: part.entry,
            storage: storage,
            mayStartAgain: request.policy != .cacheOnly
        )
        let place = WantedRange(start: bytes.lowerBound - offset, end: bytes.upperBound - offset)
        let content = ResponseContent(
            head: part.bytes == nil
                ? part.head : part.head.ofRepresentation(part.content, rules: judge.rules),
            completeLength: part.bytes == nil ? length : part.content.completeLength,
            wanted: WantedRange(bytes),
            body: EntryReader(opening, wanted: place),
            counted: bytes.count
        )
        return responses.hit(
            for: request,
            content: content,
            from: .disk,
            as: .disk,
            decision: part.decision
        )
    }
}

extension StoredResponse {
    /// The head of the whole representation, as a part of it describes it.
    fileprivate func ofRepresentation(_ part: StandalonePart, rules: CacheRules) -> StoredResponse {
        with(
            status: 200,
            StoredFields.ofRepresentation(
                partial: fields,
                completeLength: part.completeLength,
                rules: rules
            )
        )
    }
}
