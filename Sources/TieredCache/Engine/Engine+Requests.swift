import FoundationEssentials
import HTTPCaching
import HTTPTypes
import Logging

// Requests from beginning to end.
extension Engine {
    /// Answers a request by a lookup and, only if that did not answer, a download.
    func response(for request: CacheRequest) async throws(CacheError) -> CacheResponse {
        // What is to be pinned must be asked of the disk as well.
        if !request.isPinned, let answer = memoryAnswer(request) { return answer }
        // Nothing is waited for but the origin, which a cancel ends: no task is made for it.
        if !Task.isCancelled,
            let remainder = try lookup(request).immediateRemainder()
        {
            return try await fetch(
                request,
                remainder,
                OperationContext(priority: request.priority)
            )
        }
        return try await operation(for: request).value()
    }

    /// The operation behind a request; nothing happens before it is started.
    func operation(
        for request: CacheRequest
    ) -> CombinedOperation<CacheResponse, LookupOperation.Remainder> {
        CombinedOperation(
            priority: request.priority,
            lookup: { [self] () async throws(CacheError) in
                switch try await lookup(request).perform() {
                case .complete(let finding):
                    return .complete(try await response(to: request, finding))
                case .incomplete(let remainder):
                    return .incomplete(remainder)
                }
            },
            download: { [self] (remainder, context) async throws(CacheError) in
                let response = try await fetch(request, remainder, context)
                if response.body.source.storageKey == nil { await keepPin(nil, request) }
                return response
            }
        )
    }

    func lookup(_ request: CacheRequest) -> LookupOperation {
        LookupOperation(storage: storage, transfers: transfers, judge: judge, request: request)
    }

    /// Answers with what a lookup has found.
    private func response(
        to request: CacheRequest,
        _ finding: LookupOperation.Finding
    ) async throws(CacheError) -> CacheResponse {
        switch finding {
        case .held(let held, let wanted, let decision):
            if decision.action == .useAndRevalidate { revalidateInBackground(request, held) }
            return try await response(from: held, wanted, decision, request)
        case .part(let part):
            return response(from: part, request)
        case .underWay(let held, let entry, let wanted, let flight):
            return try await response(from: held, entry, wanted, sharing: flight, request)
        }
    }

    // MARK: Memory

    /// The bytes, if the memory tier may answer; synchronous.
    ///
    /// The usual hit, a plain request for a fresh entry, asks no rule: what they said at an earlier
    /// one holds until an instant that the entry knows.
    func memoryHit(_ request: CacheRequest) -> Data? {
        guard let entry = memoryEntry(request) else { return nil }
        if request.isPlainGet, entry.isFresh(at: time.coarseWallTime()) {
            recorder.didHitMemory(request.key, bytes: entry.body.count, isStale: false)
            return entry.body
        }
        return memoryHit(entry, request)
    }

    private func memoryHit(_ entry: MemoryEntry, _ request: CacheRequest) -> Data? {
        let now = time.wallTime()
        guard entry.head.status < 400, let decision = reuse(entry, request, now) else { return nil }
        guard let spec = request.range else {
            recorder.didHit(request.key, .memory, decision, bytes: entry.body.count)
            if request.isPlainGet { entry.noteFresh(at: now, for: decision.timeToLive) }
            return entry.body
        }
        guard let range = spec.resolved(completeLength: Int64(entry.body.count)) else { return nil }
        recorder.didHit(request.key, .memory, decision, bytes: range.count)
        return entry.body.part(WantedRange(start: range.lowerBound, end: range.upperBound))
    }

    func memoryAnswer(_ request: CacheRequest) -> CacheResponse? {
        guard let (entry, decision) = memoryLookup(request) else { return nil }
        let length = Int64(entry.body.count)
        let range = request.range.map { $0.resolved(completeLength: length) } ?? 0..<length
        guard let range else { return nil }
        let wanted = WantedRange(start: range.lowerBound, end: range.upperBound)
        let counted = request.countedInMemory(wanted, completeLength: length)
        let content = ResponseFactory.Content(
            head: entry.head,
            completeLength: length,
            wanted: wanted,
            body: MemoryBody(
                entry.body.part(wanted),
                at: wanted.start,
                generation: entry.generation
            )
        )
        return responses.hit(
            request,
            content,
            from: .memory,
            as: decision.source(of: .memory, for: request),
            decision,
            counted: counted
        )
    }

    private func memoryLookup(_ request: CacheRequest) -> (MemoryEntry, ReuseDecision)? {
        guard let entry = memoryEntry(request),
            let decision = reuse(entry, request, time.wallTime())
        else { return nil }
        return (entry, decision)
    }

    /// What memory holds for a request that it may answer.
    @inline(__always)
    private func memoryEntry(_ request: CacheRequest) -> MemoryEntry? {
        guard request.mayBeAnsweredAtOnce,
            let entry = storage.memory.entry(forKey: request.key), !entry.isForClientsOnly
        else { return nil }
        return entry
    }

    /// What the rules say, if it is to use the entry; anything else takes the long way.
    private func reuse(
        _ entry: MemoryEntry,
        _ request: CacheRequest,
        _ now: WallTime
    ) -> ReuseDecision? {
        let decision = judge.decision(about: entry.head, for: request, at: now)
        return decision.action == .use ? decision : nil
    }

    // MARK: Whole bodies

    func data(for request: CacheRequest) async throws(CacheError) -> Data {
        var changes = 0
        while true {
            do throws(CacheError) {
                let response = try await response(for: request)
                try response.requireSuccess(of: request)
                let bytes = try await response.body.collect()
                keepInMemory(bytes, response, request)
                return bytes
            } catch {
                changes += 1
                guard error.code == .representationChanged, changes <= 3 else { throw error }
            }
        }
    }

    /// Promotes what was read as a whole from disk or origin.
    private func keepInMemory(_ bytes: Data, _ response: CacheResponse, _ request: CacheRequest) {
        guard request.range == nil, request.isCacheable, response.mayKeepInMemory,
            Int64(bytes.count) <= storage.memory.promotionLimit, response.headSource != .memory
        else { return }
        let source = response.body.source
        let key = source.storageKey ?? request.key
        storage.promote(bytes, response.head, key, source.generation) { source.isSuperseded }
    }

    func bytes(
        for request: CacheRequest,
        range: Range<Int64>?
    ) async throws(CacheError) -> ResponseBody {
        var request = request
        if let range {
            guard range.lowerBound >= 0, !range.isEmpty else {
                throw CacheError(.invalidArgument, "the range \(range) holds no byte")
            }
            request.range =
                range.upperBound == .max
                ? .openEnded(from: range.lowerBound) : .bounded(range)
        }
        let response = try await response(for: request)
        try response.requireSuccess(of: request)
        return response.body
    }

    func contains(_ request: CacheRequest) async -> Bool {
        if memoryLookup(request) != nil { return true }
        var request = request
        if request.policy == .protocolDefault {
            // The origin is not to be asked, and age still counts.
            request.fields[.cacheControl] = "only-if-cached"
        } else {
            request.policy = .cacheOnly
        }
        return await lookup(request).wouldAnswer()
    }

    // MARK: Background

    /// Asks the origin about what was just served (RFC 5861 §3), once however many were served.
    func revalidateInBackground(_ request: CacheRequest, _ held: HeldResponse) {
        guard revalidations.withLock({ $0.insert(held.key).inserted }) else { return }
        var request = request
        // Whoever asked has an answer and is not told of this exchange.
        request.relay?.onInterim = nil
        request.fields = ConditionalRequest.removingConditions(from: request.fields)
        request.priority = .background
        request.range = nil
        let hasValidator = held.head.facts.hasValidator
        let remainder = Remainder(
            task: hasValidator ? .validate : .fetch,
            reason: .stale,
            held: hasValidator ? held : nil
        )
        Task { [request] in
            defer { revalidations.withLock { _ = $0.remove(held.key) } }
            do throws(CacheError) {
                let context = OperationContext(priority: .background)
                let response = try await fetch(request, remainder, context)
                guard response.source == .origin else { return }
                while try await response.body.source.next() != nil {}
            } catch {
                // The stale answer stays; the next request tries again.
                recorder.logger.debug(
                    "background validation failed",
                    metadata: [LogKeys.error: "\(error)"]
                )
            }
        }
    }
}
