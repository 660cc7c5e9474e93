import FoundationEssentials
import HTTPCaching

// What a request is answered with from the tiers.
extension Responder {
    /// Answers from a tier; what is missing is fetched while the body is read.
    func response(
        from stored: StoredEntry,
        _ wanted: WantedRange,
        _ decision: ReuseDecision,
        _ request: CacheRequest
    ) async throws(CacheError) -> CacheResponse {
        let isHit = stored.contains(wanted)
        if !isHit { recorder.didMiss(request.key, .partial) }
        let content = try await content(of: stored, stored.head, wanted, request)
        let source = decision.source(of: stored.tier, for: request)
        if isHit { return responses.hit(request, content, from: stored.tier, as: source, decision) }
        let isStored = await takesBytes(stored)
        return responses.response(
            to: request,
            content,
            as: source,
            .forwarded(.partial, isStored: isStored, timeToLive: decision.timeToLive)
        )
    }

    /// Opens the body of what is stored, with the head that goes with it.
    func content(
        of stored: StoredEntry,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) async throws(CacheError) -> ResponseContent {
        switch stored.body {
        case .memory(let entry): return content(of: entry, head, wanted, request)
        case .disk(let entry): return try await content(of: entry, head, wanted, request)
        }
    }

    /// What memory holds, as it is delivered.
    func content(
        of entry: MemoryEntry,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
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

    /// Whether what is missing of a response will be stored with it, as far as can be told before.
    private func takesBytes(_ stored: StoredEntry) async -> Bool {
        guard let entry = stored.diskEntry else { return true }
        return await storage.io.run { entry.checkWritable() }
    }

    /// Answers from a part that is still being fetched by somebody else's transfer.
    func response(
        from stored: StoredEntry,
        _ entry: DiskEntry,
        _ wanted: WantedRange,
        sharing transfer: Subscription,
        _ request: CacheRequest,
        _ status: CacheStatus = .forwarded(.partial, isStored: true, isCollapsed: true)
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
            transfer: transfer
        )
        var content = try content(opening, stored.head, wanted, request)
        content.storageError = await storage.keepPin(entry, request)
        return responses.response(to: request, content, as: .disk, status)
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
    ) throws(CacheError) -> ResponseContent {
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
        return ResponseContent(head: head, completeLength: length, wanted: wanted, body: body)
    }

    /// Reads a small whole body at once, which also promotes it; follows a large one.
    private func content(
        of entry: DiskEntry,
        _ head: StoredResponse,
        _ wanted: WantedRange,
        _ request: CacheRequest
    ) async throws(CacheError) -> ResponseContent {
        let storageError = await storage.keepPin(entry, request)
        if entry.isComplete, let length = entry.completeLength,
            wanted == WantedRange(start: 0, end: length), length <= storage.memory.promotionLimit,
            let bytes = await readWhole(entry, length: length)
        {
            if !request.isPrefetch {
                storage.promote(bytes, head, entry.key, entry.generation) { entry.isSuperseded }
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
        let mayFetch = request.policy != .cacheOnly
        let shared = mayFetch ? transfers.shared(for: request) : nil
        let opening = EntryOpening(
            entry: entry,
            storage: storage,
            fetcher: shared.map {
                GapFetcher(transfers: transfers, shared: $0, request: request, head: head)
            }
        )
        var content = try content(opening, head, wanted, request)
        // What a reader follows counts when it is read.
        content.counted = request.scope == nil ? wanted.count : 0
        content.storageError = storageError
        return content
    }

    /// The whole body, or nil if a block turns out to be damaged.
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
    /// The bytes of a range that was resolved against this body.
    func part(_ wanted: WantedRange) -> Data {
        let end = wanted.end ?? Int64(count)
        guard wanted.start > 0 || end < count else { return self }
        // Not a slice: whoever gets it counts from 0.
        return subdata(in: startIndex + Int(wanted.start)..<startIndex + Int(end))
    }
}
