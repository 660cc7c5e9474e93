import FoundationEssentials
import HTTPCaching

// Answers that need no waiting.
extension Responder {
    // MARK: For servers that have a thread of their own to answer on

    /// A body at least that long is sent from its file, if it has one, rather than from memory.
    static let sentFromFile = 32 << 10

    /// What answers a request at once; nil, whatever the reason, where it takes more than a look.
    func hit(_ repeated: RepeatedRequest, _ spec: ByteRangeSpec?) -> ImmediateHit? {
        let request = repeated.request
        guard request.mayBeAnsweredAtOnce else { return nil }
        if let entry = storage.memory.entry(forKey: request.key) {
            guard entry.head.mayAnswer(request) else { return nil }
            let head = repeated.head(of: entry)
            let length = Int64(entry.body.count)
            return hit(repeated, head, spec, length: length, .memory) { range in
                file(of: entry, request, range).map { .disk($0) } ?? .memory(entry.body)
            }
        }
        guard let entry = storage.entryAtHand(request.key), let length = entry.completeLength,
            let head = repeated.head(of: entry), head.stored.mayAnswer(request)
        else { return nil }
        return hit(repeated, head, spec, length: length, .disk) { range in
            let isStored =
                entry.isComplete || range.isEmpty
                || entry.storedRange(at: range.lowerBound).map { $0.upperBound >= range.upperBound }
                    ?? false
            return isStored ? .disk(entry) : nil
        }
    }

    private func hit(
        _ repeated: RepeatedRequest,
        _ head: HitHead,
        _ spec: ByteRangeSpec?,
        length: Int64,
        _ tier: MediaCache.Event.Tier,
        _ bytes: (Range<Int64>) -> StoredBytes?
    ) -> ImmediateHit? {
        let request = repeated.request
        let decision = judge.decision(about: head.stored, for: request)
        guard decision.action == .use, !decision.isStale,
            // Another client's own fields are not looked at here.
            request.relay == nil || head.stored.selectingFields.isEmpty,
            let range = spec.map({ $0.resolved(completeLength: length) }) ?? 0..<length,
            let bytes = bytes(range)
        else { return nil }
        recorder.didHit(request.key, tier, decision, bytes: range.count)
        return ImmediateHit(
            head: head,
            range: range,
            completeLength: length,
            cacheStatus: .hit(timeToLive: decision.timeToLive, detail: tier.rawValue),
            tier: tier,
            bytes: bytes
        )
    }

    /// The disk entry of which a large memory entry is a copy, if it is open.
    private func file(
        of entry: MemoryEntry,
        _ request: CacheRequest,
        _ range: Range<Int64>
    ) -> DiskEntry? {
        guard range.count >= Self.sentFromFile, let generation = entry.generation,
            let found = storage.entryAtHand(request.key), found.generation == generation,
            found.isComplete
        else { return nil }
        return found
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
        return entry.body.part(WantedRange(range))
    }

    func memoryAnswer(_ request: CacheRequest) -> CacheResponse? {
        guard let (entry, decision) = memoryLookup(request) else { return nil }
        let length = Int64(entry.body.count)
        guard let wanted = WantedRange(request.range, completeLength: length) else { return nil }
        return responses.hit(
            request,
            content(of: entry, entry.head, wanted, request),
            from: .memory,
            as: decision.source(of: .memory, for: request),
            decision
        )
    }

    func memoryLookup(_ request: CacheRequest) -> (MemoryEntry, ReuseDecision)? {
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
}
