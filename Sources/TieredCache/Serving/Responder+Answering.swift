import FoundationEssentials
import HTTPCaching

// What a request is answered with from the tiers.
extension Responder {
    /// Answers from a tier; what is missing is fetched while the body is read.
    func response(
        from held: HeldResponse,
        _ wanted: WantedRange,
        _ decision: ReuseDecision,
        _ request: CacheRequest
    ) async throws(CacheError) -> CacheResponse {
        let isHit = held.holds(wanted)
        if !isHit { recorder.didMiss(request.key, .partial) }
        let found = try await content(of: held, held.head, wanted, request)
        let source = decision.source(of: held.tier, for: request)
        guard isHit else {
            let isStored = await takesBytes(held)
            return responses.response(
                to: request,
                found.content,
                as: source,
                .forwarded(.partial, isStored: isStored, timeToLive: decision.timeToLive),
                trouble: found.trouble
            )
        }
        return responses.hit(
            request,
            found.content,
            from: held.tier,
            as: source,
            decision,
            counted: found.counted,
            trouble: found.trouble
        )
    }

    /// What is held, as it is delivered.
    struct HeldContent {
        let content: ResponseFactory.Content
        /// How many of its bytes count as delivered by now.
        let counted: Int
        /// Why it cannot be pinned.
        var trouble: CacheError?
    }

    /// Opens the body of what is held, with the head that goes with it.
    func content(
        of held: HeldResponse,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) async throws(CacheError) -> HeldContent {
        switch held.body {
        case .memory(let entry):
            return HeldContent(
                content: ResponseFactory.Content(
                    head: head,
                    completeLength: held.completeLength,
                    wanted: wanted,
                    body: MemoryBody(
                        entry.body.part(wanted),
                        at: wanted.start,
                        generation: entry.generation
                    )
                ),
                counted: request.countedInMemory(wanted, completeLength: held.completeLength)
            )
        case .disk(let entry):
            let trouble = await storage.keepPin(entry, request)
            return try await content(of: entry, head, wanted, request, trouble)
        }
    }

    /// Whether what is missing of a response will be stored with it, as far as can be told before.
    private func takesBytes(_ held: HeldResponse) async -> Bool {
        guard let entry = held.diskEntry else { return true }
        return await storage.io.run { entry.checkFillable() }
    }

    /// Answers from a part that is still being fetched by somebody else's flight.
    func response(
        from held: HeldResponse,
        _ entry: DiskEntry,
        _ wanted: WantedRange,
        sharing flight: Subscription,
        _ request: CacheRequest,
        _ status: CacheStatus = .forwarded(.partial, isStored: true, isCollapsed: true)
    ) async throws(CacheError) -> CacheResponse {
        let fill = transfers.fill(for: request)
        let opening = EntryOpening(
            entry: entry,
            storage: storage,
            filler: Filler(transfers: transfers, fill: fill, request: request, head: held.head),
            flight: flight
        )
        let content = try content(opening, held.head, wanted, request)
        let trouble = await storage.keepPin(entry, request)
        return responses.response(to: request, content, as: .disk, status, trouble: trouble)
    }

    /// Opens an entry for an answer: to be read through, or as a reader reads if that has asked.
    ///
    /// - Parameters:
    ///   - opening: what is read.
    ///   - head: what goes with it.
    ///   - wanted: the bytes that the request is for.
    ///   - request: what is answered.
    /// - Returns: the answer; for a reader with all that it may come to.
    /// - Throws: `.rangeNotSatisfiable`.
    func content(
        _ opening: EntryOpening,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) throws(CacheError) -> ResponseFactory.Content {
        let length = opening.entry.completeLength
        var wanted = wanted
        let body: EntryReader
        if let scope = request.scope, head.status < 400,
            let all = try request.wanted(in: scope, completeLength: length)
        {
            wanted = all
            body = EntryReader(opening, from: request.range, all, scope)
        } else {
            body = EntryReader(opening, wanted)
        }
        return ResponseFactory.Content(
            head: head,
            completeLength: length,
            wanted: wanted,
            body: body
        )
    }

    /// Reads a small whole body at once, which also promotes it; follows a large one.
    private func content(
        of entry: DiskEntry,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest,
        _ trouble: CacheError?
    ) async throws(CacheError) -> HeldContent {
        if entry.isComplete, let length = entry.completeLength,
            wanted == WantedRange(start: 0, end: length), length <= storage.memory.promotionLimit,
            let bytes = await readWhole(entry, length: length)
        {
            if !request.isPrefetch {
                storage.promote(bytes, head, entry.key, entry.generation) { entry.isSuperseded }
            }
            let content = ResponseFactory.Content(
                head: head,
                completeLength: length,
                wanted: wanted,
                body: MemoryBody(bytes, storageKey: entry.key, generation: entry.generation)
            )
            return HeldContent(content: content, counted: wanted.count, trouble: trouble)
        }
        let mayFetch = request.policy != .cacheOnly
        let fill = mayFetch ? transfers.fill(for: request) : nil
        let opening = EntryOpening(
            entry: entry,
            storage: storage,
            filler: fill.map {
                Filler(transfers: transfers, fill: $0, request: request, head: head)
            }
        )
        return HeldContent(
            content: try content(opening, head, wanted, request),
            // What a reader follows counts when it is read.
            counted: request.scope == nil ? wanted.count : 0,
            trouble: trouble
        )
    }

    /// The whole body, or nil if a block turns out to be damaged.
    private func readWhole(_ entry: DiskEntry, length: Int64) async -> Data? {
        let buffer = ReadBuffer(capacity: Int(length))
        let read: Int
        switch buffer.fill({ entry.readWithoutBlocking(at: 0, into: $0) }) {
        case .ready(let count) where count == length: read = count
        default: read = await storage.io.run { buffer.fill { entry.read(at: 0, into: $0) } }
        }
        return read == length ? buffer.data(count: read) : nil
    }
}

extension Data {
    /// The bytes of a range that was resolved against this body.
    func part(_ wanted: WantedRange) -> Data {
        let end = wanted.end ?? Int64(count)
        guard wanted.start > 0 || end < count else { return self }
        // Not a slice: whoever gets it counts from 0.
        return subdata(in: startIndex + Int(wanted.start)..<startIndex + Int(end))
    }
}
