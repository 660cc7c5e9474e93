import HTTPCaching
import HTTPTypes

// Parts of a representation that nothing may be joined to (RFC 9111 §3.4).
//
// Each is an entry of its own under a key made from that of the whole, as variants are, with its
// bytes from 0 on. It answers requests for bytes inside it while it is fresh, and is replaced,
// never completed.
extension Responder {
    /// Answers with bytes of a part by itself.
    func response(from part: StoredPart, _ request: CacheRequest) -> CacheResponse {
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
                ? part.head : part.head.ofRepresentation(part.content, judge.rules),
            completeLength: part.bytes == nil ? length : part.content.completeLength,
            wanted: WantedRange(bytes),
            body: EntryReader(opening, place),
            counted: bytes.count
        )
        return responses.hit(request, content, from: .disk, as: .disk, part.decision)
    }
}

extension StoredResponse {
    /// The head of the whole that a part tells about.
    fileprivate func ofRepresentation(_ part: StandalonePart, _ rules: CacheRules) -> StoredResponse
    {
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
