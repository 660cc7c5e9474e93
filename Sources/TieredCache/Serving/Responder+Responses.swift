import FoundationEssentials
import HTTPCaching

// Responses made from the tiers.
extension Responder {
    /// Responds from a tier; missing bytes are fetched while the body is read.
    func response(
        from stored: StoredEntry,
        wanted: WantedRange,
        decision: ReuseDecision,
        for request: CacheRequest
    ) async throws(CacheError) -> CacheResponse {
        let isHit = stored.contains(wanted)
        if !isHit { recorder.didMiss(request.key, because: .partial) }
        let content = try await content(of: stored, head: stored.head, wanted: wanted, for: request)
        let source = decision.source(of: stored.tier, for: request)
        if isHit {
            return responses.hit(
                for: request,
                content: content,
                from: stored.tier,
                as: source,
                decision: decision
            )
        }
        let isStored = await takesBytes(stored)
        return responses.response(
            to: request,
            content: content,
            as: source,
            status: .forwarded(.partial, isStored: isStored, timeToLive: decision.timeToLive)
        )
    }

    /// Opens the body of a stored response, with its head.
    func content(
        of stored: StoredEntry,
        head: StoredResponse,
        wanted: WantedRange,
        for request: CacheRequest
    ) async throws(CacheError) -> ResponseContent {
        switch stored.body {
        case .memory(let entry): return content(of: entry, head: head, wanted: wanted, for: request)
        case .disk(let entry):
            return try await content(of: entry, head: head, wanted: wanted, for: request)
        }
    }

    /// The content of a memory entry.
    func content(
        of entry: MemoryEntry,
        head: StoredResponse,
        wanted: WantedRange,
        for request: CacheRequest
    ) -> ResponseContent {
        let length = Int64(entry.body.count)
        return ResponseContent(
            head: head,
            completeLength: length,
            wanted: wanted,
            body: MemoryBody(
                entry.body.part(wanted),
                at: wanted.start,
                generation: entry.generation
            ),
            counted: request.countedInMemory(wanted, completeLength: length)
        )
    }

    /// Whether the missing bytes of a response will be stored, as far as can be determined now.
    private func takesBytes(_ stored: StoredEntry) async -> Bool {
        guard let entry = stored.diskEntry else { return true }
        return await storage.io.run { entry.checkWritable() }
    }

    /// Responds from an entry that a transfer of another request is still writing.
    func response(
        from stored: StoredEntry,
        entry: DiskEntry,
        wanted: WantedRange,
        sharing transfer: Subscription,
        for request: CacheRequest,
        status: CacheStatus = .forwarded(.partial, isStored: true, isCollapsed: true)
    ) async throws(CacheError) -> CacheResponse {
        let shared = transfers.shared(for: request)
        let opening = EntryOpening(
            entry: entry,
            storage: storage,
            fetcher: GapFetcher(
                transfers: transfers,
                shared: shared,
                request: request,
                head: stored.head
            ),
            judge: bodyJudge(for: request),
            transfer: transfer
        )
        var content = try content(of: opening, head: stored.head, wanted: wanted, for: request)
        content.storageError = await storage.keepPin(entry, for: request)
        return responses.response(to: request, content: content, as: .disk, status: status)
    }

    /// Opens an entry for a response: for one pass, or for a reader if the request has a scope.
    ///
    /// - Parameters:
    ///   - opening: the entry, and how its missing bytes are fetched.
    ///   - head: the head of the response.
    ///   - wanted: the requested bytes.
    ///   - request: the request to answer.
    /// - Returns: the content; for a reader it covers all bytes that the reader may reach.
    /// - Throws: `.rangeNotSatisfiable`.
    func content(
        of opening: EntryOpening,
        head: StoredResponse,
        wanted: WantedRange,
        for request: CacheRequest
    ) throws(CacheError) -> ResponseContent {
        let length = opening.entry.completeLength
        var wanted = wanted
        let body: EntryReader
        if let scope = request.scope, head.status < 400,
            let all = try request.wanted(in: scope, completeLength: length)
        {
            wanted = all
            body = EntryReader(opening, from: request.range, wanted: all, scope: scope)
        } else {
            body = EntryReader(opening, wanted: wanted)
        }
        return ResponseContent(head: head, completeLength: length, wanted: wanted, body: body)
    }

    /// The content of a body that has come whole from the origin.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - entry: the entry that it was stored in; nil if it is not stored.
    ///   - head: the head of the response.
    ///   - wanted: the requested bytes.
    ///   - request: the request to answer.
    /// - Returns: the content; for a reader it covers all bytes that the reader may reach.
    /// - Throws: `.rangeNotSatisfiable`.
    func content(
        ofFetched body: Data,
        in entry: DiskEntry?,
        head: StoredResponse,
        wanted: WantedRange,
        for request: CacheRequest
    ) throws(CacheError) -> ResponseContent {
        let length = Int64(body.count)
        var wanted = wanted
        if let scope = request.scope, head.status < 400,
            let all = try request.wanted(in: scope, completeLength: length)
        {
            wanted = all
        }
        return ResponseContent(
            head: head,
            completeLength: length,
            wanted: wanted,
            body: MemoryBody(body.part(wanted), at: wanted.start, isFetched: true, in: entry)
        )
    }

    /// What a reader of a stored body gets; it asks the origin only where the request may.
    func opening(
        of entry: DiskEntry,
        head: StoredResponse,
        for request: CacheRequest
    )
        -> EntryOpening
    {
        let mayFetch = request.policy != .cacheOnly
        let shared = mayFetch ? transfers.shared(for: request) : nil
        return EntryOpening(
            entry: entry,
            storage: storage,
            fetcher: shared.map {
                GapFetcher(transfers: transfers, shared: $0, request: request, head: head)
            },
            judge: bodyJudge(for: request)
        )
    }

    /// Reads a small complete body at once, which also promotes it; follows a large one.
    private func content(
        of entry: DiskEntry,
        head: StoredResponse,
        wanted: WantedRange,
        for request: CacheRequest
    ) async throws(CacheError) -> ResponseContent {
        let storageError = await storage.keepPin(entry, for: request)
        bodyJudge(for: request).enter(entry)
        // A body that is still to be compared is read by a reader, which waits for that.
        let isDue = BodyJudge.awaitsDecision(entry)
        if entry.isComplete, !isDue || request.relay != nil, request.expectedDigests.isEmpty,
            let length = entry.completeLength, wanted == WantedRange(start: 0, end: length),
            length <= storage.memory.promotionLimit,
            let bytes = await readWhole(entry, length: length)
        {
            if !request.isPrefetch, !isDue {
                storage.promote(bytes, head: head, key: entry.key, generation: entry.generation) {
                    entry.isSuperseded
                }
            }
            return ResponseContent(
                head: head,
                completeLength: length,
                wanted: wanted,
                body: MemoryBody(bytes, storageKey: entry.key, generation: entry.generation),
                counted: wanted.count,
                storageError: storageError
            )
        }
        let opening = opening(of: entry, head: head, for: request)
        var content = try content(of: opening, head: head, wanted: wanted, for: request)
        // Bytes for a reader are counted when they are read.
        content.counted = request.scope == nil ? wanted.count : 0
        content.storageError = storageError
        return content
    }

    /// The complete body, or nil if a block is damaged.
    private func readWhole(_ entry: DiskEntry, length: Int64) async -> Data? {
        let buffer = ReadBuffer(capacity: Int(length))
        let read: Int
        switch buffer.withMemory({ entry.readWithoutBlocking(at: 0, into: $0) }) {
        case .ready(let count) where count == length: read = count
        default: read = await storage.io.run { buffer.withMemory { entry.read(at: 0, into: $0) } }
        }
        return read == length ? buffer.data(count: read) : nil
    }
}

extension Data {
    /// The bytes of a range that was resolved against the length of this body.
    func part(_ wanted: WantedRange) -> Data {
        let end = wanted.end ?? Int64(count)
        guard wanted.start > 0 || end < count else { return self }
        // A copy, not a slice: the indices of the result start at 0.
        return subdata(in: startIndex + Int(wanted.start)..<startIndex + Int(end))
    }
}
