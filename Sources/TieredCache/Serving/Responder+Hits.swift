import FoundationEssentials
import HTTPCaching

// Responses that need no wait.
extension Responder {
    // MARK: For servers that respond on their own threads

    /// The minimum length in bytes of a range that is sent from its file rather than from memory.
    static let sentFromFile = 32 << 10

    /// A response without a wait; nil, for whatever reason, if more than one look is necessary.
    func hit(for repeated: RepeatedRequest, range spec: ByteRangeSpec?) -> ImmediateHit? {
        let request = repeated.request
        guard request.mayBeAnsweredImmediately else { return nil }
        if let entry = storage.memory.entry(forKey: request.key), entry.isExpected(by: request) {
            guard judge.mayAnswer(request, with: entry.head) else { return nil }
            let head = repeated.head(of: entry)
            let length = Int64(entry.body.count)
            return hit(for: repeated, head: head, spec: spec, length: length, tier: .memory) {
                range in
                file(of: entry, for: request, range: range).map { .disk($0) } ?? .memory(entry.body)
            }
        }
        guard let entry = storage.entryAtHand(request.key), let length = entry.completeLength,
            let head = repeated.head(of: entry), judge.mayAnswer(request, with: head.stored)
        else { return nil }
        return hit(for: repeated, head: head, spec: spec, length: length, tier: .disk) { range in
            let isStored =
                entry.isComplete || range.isEmpty
                || entry.storedRange(at: range.lowerBound).map { $0.upperBound >= range.upperBound }
                    ?? false
            // A reader waits for the comparison of a whole body with a digest.
            guard isStored, request.expectedDigests.isEmpty,
                request.relay != nil || !BodyJudge.awaitsDecision(entry) || !entry.isWhole
            else { return nil }
            entry.enter(expecting: [])
            return .disk(entry)
        }
    }

    private func hit(
        for repeated: RepeatedRequest,
        head: HitHead,
        spec: ByteRangeSpec?,
        length: Int64,
        tier: MediaCache.Event.Tier,
        bytes: (Range<Int64>) -> StoredBytes?
    ) -> ImmediateHit? {
        let request = repeated.request
        let decision = judge.decision(about: head.stored, for: request)
        guard decision.action == .use, !decision.isStale,
            // The fields of a relayed request are not compared here.
            request.relay == nil || head.stored.selectingFields.isEmpty,
            let range = spec.map({ $0.resolved(completeLength: length) }) ?? 0..<length,
            let bytes = bytes(range)
        else { return nil }
        recorder.didHit(request.key, in: tier, decision: decision, bytes: range.count)
        return ImmediateHit(
            head: head,
            range: range,
            completeLength: length,
            cacheStatus: .hit(timeToLive: decision.timeToLive, detail: tier.rawValue),
            tier: tier,
            bytes: bytes
        )
    }

    /// The open disk entry of which a large memory entry is a copy; nil if it is not open.
    private func file(
        of entry: MemoryEntry,
        for request: CacheRequest,
        range: Range<Int64>
    ) -> DiskEntry? {
        guard range.count >= Self.sentFromFile, let generation = entry.generation,
            let found = storage.entryAtHand(request.key), found.generation == generation,
            found.isComplete, request.relay != nil || !BodyJudge.awaitsDecision(found)
        else { return nil }
        found.enter(expecting: request.expectedDigests)
        return found
    }

    // MARK: For readers of large bodies

    /// The response to a request of a reader, of a body that is whole, fresh, and open on disk.
    ///
    /// - Parameters:
    ///   - request: the request, without a range.
    ///   - first: the bytes that the reader would ask for first.
    /// - Returns: nil if that is not so, and for a body that the memory tier would take.
    func wholeResponseAtHand(
        _ request: CacheRequest,
        opening first: Range<Int64>
    ) -> CacheResponse? {
        guard request.mayBeAnsweredImmediately, request.range == nil,
            let entry = storage.entryAtHand(request.key), entry.isComplete,
            let length = entry.completeLength,
            length > min(storage.memory.promotionLimit, first.upperBound),
            let head = StoredResponse(encoded: entry.metadata),
            judge.mayAnswer(request, with: head),
            request.expectedDigests.isEmpty, !BodyJudge.awaitsDecision(entry)
        else { return nil }
        let decision = judge.decision(about: head, for: request)
        guard head.status < 400, decision.action == .use, !decision.isStale else { return nil }
        let content: ResponseContent
        do throws(CacheError) {
            content = try self.content(
                of: opening(of: entry, head: head, for: request),
                head: head,
                wanted: WantedRange(start: 0, end: length),
                for: request
            )
        } catch {
            return nil  // The full lookup says what is wrong.
        }
        return responses.hit(
            for: request,
            content: content,
            from: .disk,
            as: .disk,
            decision: decision
        )
    }

    // MARK: Memory

    /// The bytes, if the memory tier may answer; synchronous.
    ///
    /// The usual hit, a plain request for a fresh entry, evaluates no rule: the decision of an
    /// earlier hit is valid until a time that the entry stores.
    func memoryHit(_ request: CacheRequest) -> Data? {
        guard let entry = memoryEntry(request) else { return nil }
        if request.isPlainGet, entry.isFresh(at: time.coarseWallTime()) {
            recorder.didHitMemory(request.key, bytes: entry.body.count, isStale: false)
            return entry.body
        }
        return memoryHit(in: entry, for: request)
    }

    private func memoryHit(in entry: MemoryEntry, for request: CacheRequest) -> Data? {
        let now = time.wallTime()
        guard entry.head.status < 400, let decision = reuse(of: entry, for: request, now: now)
        else { return nil }
        guard let spec = request.range else {
            recorder.didHit(request.key, in: .memory, decision: decision, bytes: entry.body.count)
            if request.isPlainGet { entry.noteFresh(at: now, for: decision.timeToLive) }
            return entry.body
        }
        guard let range = spec.resolved(completeLength: Int64(entry.body.count)) else { return nil }
        recorder.didHit(request.key, in: .memory, decision: decision, bytes: range.count)
        return entry.body.part(WantedRange(range))
    }

    func memoryResponse(_ request: CacheRequest) -> CacheResponse? {
        guard let (entry, decision) = memoryLookup(request) else { return nil }
        let length = Int64(entry.body.count)
        guard let wanted = WantedRange(request.range, completeLength: length) else { return nil }
        return responses.hit(
            for: request,
            content: content(of: entry, head: entry.head, wanted: wanted, for: request),
            from: .memory,
            as: decision.source(of: .memory, for: request),
            decision: decision
        )
    }

    func memoryLookup(_ request: CacheRequest) -> (MemoryEntry, ReuseDecision)? {
        guard let entry = memoryEntry(request),
            let decision = reuse(of: entry, for: request, now: time.wallTime())
        else { return nil }
        return (entry, decision)
    }

    /// The memory entry of a request that it may answer.
    @inline(__always)
    private func memoryEntry(_ request: CacheRequest) -> MemoryEntry? {
        guard request.mayBeAnsweredImmediately,
            let entry = storage.memory.entry(forKey: request.key), !entry.isForClientsOnly,
            entry.isExpected(by: request)
        else { return nil }
        return entry
    }

    /// The decision of the rules if it is to use the entry; nil sends the request to a full lookup.
    private func reuse(
        of entry: MemoryEntry,
        for request: CacheRequest,
        now: WallTime
    ) -> ReuseDecision? {
        let decision = judge.decision(about: entry.head, for: request, at: now)
        return decision.action == .use ? decision : nil
    }
}
