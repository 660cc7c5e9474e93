import FoundationEssentials
import HTTPCaching

// What a request is answered with, by where the bytes come from.
extension Engine {
    // MARK: From the cache

    /// Answers from a tier; what is missing is fetched while the body is read.
    func response(
        from held: HeldResponse,
        _ wanted: WantedRange,
        _ decision: ReuseDecision,
        _ request: CacheRequest
    ) async throws(CacheError) -> CacheResponse {
        let isHit = held.holds(wanted)
        if !isHit { didMiss(request, .partial) }
        let body: any BodySource
        var source = ResponseSource.disk
        switch held.body {
        case .memory(let entry):
            if isHit { didHit(request, .memory, decision, bytes: wanted.count) }
            source = .memory
            body = MemoryBody(entry.body.part(wanted))
        case .disk(let entry):
            if isHit { didHit(request, .disk, decision, bytes: wanted.count) }
            body = await diskBody(entry, held.head, wanted, request)
        }
        let isStale = decision.isStale && request.policy == .protocolDefault
        return CacheResponse(
            held.head,
            request: request,
            source: isStale ? .stale : source,
            cacheStatus: isHit
                ? .hit(timeToLive: decision.timeToLive, detail: source.rawValue)
                : .forwarded(.partial, timeToLive: decision.timeToLive),
            completeLength: held.completeLength,
            wanted: wanted,
            body: body,
            now: time.wallTime()
        )
    }

    /// Reads a small whole body at once, which also promotes it; follows a large one.
    private func diskBody(
        _ entry: DiskEntry,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) async -> any BodySource {
        if entry.isComplete, let length = entry.completeLength,
            wanted == WantedRange(start: 0, end: length), length <= memory.promotionLimit,
            let bytes = await readWhole(entry, length: length)
        {
            if !request.isPrefetch {
                memory.insert(MemoryEntry(head: head, body: bytes), forKey: request.key)
            }
            return MemoryBody(bytes)
        }
        let mayFetch = request.policy != .cacheOnly
        let fill = mayFetch ? fill(for: request) : nil
        return FollowingBody(
            entry: entry,
            wanted: wanted,
            engine: self,
            filler: fill.map { Filler(engine: self, fill: $0, request: request, head: head) }
        )
    }

    /// The whole body, or nil if a block turns out to be damaged.
    private func readWhole(_ entry: DiskEntry, length: Int64) async -> Data? {
        let buffer = ReadBuffer(capacity: Int(length))
        let read: Int
        switch buffer.fill({ entry.readWithoutBlocking(at: 0, into: $0) }) {
        case .ready(let count) where count == length: read = count
        default: read = await io.run { buffer.fill { entry.read(at: 0, into: $0) } }
        }
        return read == length ? buffer.data(count: read) : nil
    }

    // MARK: From the origin

    func storingAnswer(
        _ flight: Flight,
        _ generation: Fill.Generation,
        _ request: CacheRequest,
        _ remainder: Remainder
    ) async throws(CacheError) -> CacheResponse {
        let entry = generation.entry
        let wanted = try WantedRange.resolve(request.range, completeLength: entry.completeLength)
        guard let wanted else { throw lengthUnknown(request) }
        let filler = Filler(
            engine: self,
            fill: flight.fill,
            request: request,
            head: generation.head
        )
        let body = FollowingBody(
            entry: entry,
            wanted: wanted,
            engine: self,
            filler: filler,
            flight: flight.subscription,
            heldBefore: flight.heldBefore
        )
        return CacheResponse(
            generation.head,
            request: request,
            source: flight.heldBefore.isEmpty ? .origin : .revalidated,
            cacheStatus: .forwarded(
                remainder.reason,
                isStored: true,
                isCollapsed: !flight.subscription.isFirst
            ),
            completeLength: entry.completeLength,
            wanted: wanted,
            body: body,
            now: time.wallTime()
        )
    }

    func passingAnswer(
        _ flight: Flight,
        _ head: StoredResponse,
        _ channel: PassThroughChannel,
        _ reason: DownloadOperation.NotStored,
        _ request: CacheRequest,
        _ remainder: Remainder
    ) throws(CacheError) -> CacheResponse {
        guard !request.isPrefetch else { throw reason.error(for: request) }
        let length = channel.completeLength
        let wanted = try WantedRange.resolve(request.range, completeLength: length)
        guard let wanted else { throw lengthUnknown(request) }
        let body = PassThroughBody(
            channel,
            range: wanted.start..<(wanted.end ?? .max),
            subscription: flight.subscription
        )
        return CacheResponse(
            head,
            request: request,
            source: .origin,
            cacheStatus: .forwarded(remainder.reason, detail: reason.detail),
            completeLength: length,
            wanted: wanted,
            body: body,
            now: time.wallTime(),
            notStored: reason
        )
    }

    /// A 304: what is held is delivered.
    func confirmedAnswer(
        _ request: CacheRequest,
        _ held: HeldResponse,
        _ head: StoredResponse,
        _ remainder: Remainder
    ) async throws(CacheError) -> CacheResponse {
        try await heldAnswer(
            request,
            held,
            head,
            .revalidated,
            .forwarded(remainder.reason, status: 304, isStored: true)
        )
    }

    private func heldAnswer(
        _ request: CacheRequest,
        _ held: HeldResponse,
        _ head: StoredResponse,
        _ source: ResponseSource,
        _ status: CacheStatus
    ) async throws(CacheError) -> CacheResponse {
        let length = held.completeLength
        let wanted = try WantedRange.resolve(request.range, completeLength: length)
        guard let wanted else { throw lengthUnknown(request) }
        let body: any BodySource
        switch held.body {
        case .memory(let entry): body = MemoryBody(entry.body.part(wanted))
        case .disk(let entry): body = await diskBody(entry, head, wanted, request)
        }
        return CacheResponse(
            head,
            request: request,
            source: source,
            cacheStatus: status,
            completeLength: length,
            wanted: wanted,
            body: body,
            now: time.wallTime()
        )
    }

    // MARK: When the origin fails

    /// An error status; a held response may stand in for it (RFC 5861 §4).
    func unsuccessfulAnswer(
        _ request: CacheRequest,
        _ head: StoredResponse,
        _ remainder: Remainder
    ) throws(CacheError) -> CacheResponse {
        if [500, 502, 503, 504].contains(head.status), remainder.staleOnError == .error,
            remainder.held != nil
        {
            throw CacheError.status(head.status, for: request.target)
        }
        return CacheResponse(
            head,
            request: request,
            source: .origin,
            cacheStatus: .forwarded(remainder.reason, status: head.status),
            completeLength: 0,
            wanted: WantedRange(start: 0, end: 0),
            body: MemoryBody(Data()),
            now: time.wallTime()
        )
    }

    /// What is held, marked as stale, if the rules allow it for this failure.
    func staleAnswer(
        _ request: CacheRequest,
        _ remainder: Remainder,
        _ error: CacheError
    ) async throws(CacheError) -> CacheResponse? {
        guard let held = remainder.held, remainder.staleOnError != .never else { return nil }
        switch error.code {
        case .originFailed, .timedOut: break
        case .httpStatus where remainder.staleOnError == .error: break
        default: return nil
        }
        didServeStale(request)
        return try await heldAnswer(
            request,
            held,
            held.head,
            .stale,
            .forwarded(remainder.reason, status: error.status, detail: "stale")
        )
    }

    private func lengthUnknown(_ request: CacheRequest) -> CacheError {
        CacheError(
            .rangeNotSatisfiable,
            "\(request.target.redacted) has no known length to count the last bytes from"
        )
    }
}

extension WantedRange {
    /// How many bytes there are, as far as the end is known.
    fileprivate var count: Int { Int((end ?? start) - start) }
}

extension Data {
    /// The bytes of a range that was resolved against this body.
    func part(_ wanted: WantedRange) -> Data {
        let end = wanted.end ?? Int64(count)
        guard wanted.start > 0 || end < count else { return self }
        return self[startIndex + Int(wanted.start)..<startIndex + Int(end)]
    }
}
