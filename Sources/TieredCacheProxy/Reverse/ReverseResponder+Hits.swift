import HTTPCaching
import HTTPTypes
import Logging
import NIOCore
import TieredCache

// The hit path: a plain GET for a fresh stored response is answered on the event loop, without a
// task.
extension ReverseResponder {
    /// Fields that affect how a cache answers, beside those that `Vary` names.
    private static let notPlain: Set<String> = [
        "authorization", "cache-control", "expect", "if-match", "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "te",
        "upgrade",
    ]

    func immediateResponse(to request: ServerRequest) -> PendingResponse? {
        guard let plain = PlainRequest(request, unless: Self.notPlain), plain.range == nil,
            hosts.allows(plain.host)
        else { return nil }
        let known = hits.page(of: request.target)
        guard let page = known ?? newPage(request),
            let hit = cache.immediateHit(page.request, range: nil), hit.status == 200
        else { return nil }
        let now = SystemTimeSource().wallTime()
        guard let lines = page.lines(of: hit, now: now, { fields(of: hit, now: now) }) else {
            return nil
        }
        if known == nil { hits.keep(page, of: request.target) }
        var head = ResponseHead(status: 200, framing: .length(hit.completeLength))
        head.lines = lines
        let generation = hit.head.generation
        return PendingResponse(head: head, bytes: hit.bytes, range: hit.range) { offset, writer in
            let rest = offset..<hit.range.upperBound
            await send(rest, of: page.request.target, generation: generation, to: writer)
        }
    }

    private func newPage(_ request: ServerRequest) -> ResponseHeadCache.Page? {
        target.target(for: request.target).map {
            ResponseHeadCache.Page(RepeatedRequest(relaying: $0))
        }
    }

    /// The fields as in a relayed response.
    private func fields(of hit: ImmediateHit, now: WallTime) -> HTTPFields? {
        var fields = hit.fields(now: now)
        fields[.contentLength] = nil
        if let name = HTTPField.Name("Cache-Status") {
            fields.append(HTTPField(name: name, value: hit.cacheStatus.fieldValue))
        }
        return Intermediary.addingVia(StoredFields.endToEnd(fields))
    }

    /// Sends the rest of a response that the event loop has begun, if it is still stored.
    private func send(
        _ rest: Range<Int64>,
        of target: TargetURI,
        generation: UInt64?,
        to writer: ResponseWriter
    ) async {
        do {
            guard let generation,
                let stored = try await cache.storedBytes(
                    rest,
                    of: CacheKey(target),
                    generation: generation
                )
            else { return }
            var body = stored.makeAsyncIterator()
            while try await writer.writeNext(of: &body) != nil {}
            try await writer.finish()
        } catch {
            logger.debug("answer cut", metadata: ["error": "\(error)"])
        }
    }
}
