package import HTTPCaching

// Answers that need no waiting, for servers that have a thread of their own to answer on.
extension Engine {
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
            let isHeld =
                entry.isComplete || range.isEmpty
                || entry.held(at: range.lowerBound).map { $0.upperBound >= range.upperBound }
                    ?? false
            return isHeld ? .disk(entry) : nil
        }
    }

    private func hit(
        _ repeated: RepeatedRequest,
        _ head: HitHead,
        _ spec: ByteRangeSpec?,
        length: Int64,
        _ tier: CacheEvent.Tier,
        _ bytes: (Range<Int64>) -> HeldBytes?
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
}

extension TieredCache {
    /// What answers a request at once, without waiting for anything; counted as a hit.
    ///
    /// Synchronous, and never blocks on the disk.
    ///
    /// - Parameters:
    ///   - repeated: what is wanted.
    ///   - range: which bytes of it; nil for all.
    /// - Returns: nil, whatever the reason; then ``response(for:)`` answers.
    package func immediateHit(
        _ repeated: RepeatedRequest,
        range: ByteRangeSpec?
    ) -> ImmediateHit? {
        engine.hit(repeated, range)
    }

    /// Bytes of a certain body that is held, read on the threads that may wait.
    ///
    /// For the rest of an answer that ``immediateHit(_:range:)`` has begun.
    ///
    /// - Parameters:
    ///   - range: which bytes.
    ///   - target: whose.
    ///   - generation: the number of the body.
    /// - Returns: nil if the cache has another body by now, or none.
    /// - Throws: `.localStorage`.
    package func heldBytes(
        _ range: Range<Int64>,
        of target: TargetURI,
        generation: UInt64
    ) async throws(CacheError) -> ResponseBody? {
        let key = CacheKey(target)
        guard let entry = try await engine.storage.entry(for: key, isUse: true),
            entry.generation == generation
        else { return nil }
        let wanted = WantedRange(start: range.lowerBound, end: range.upperBound)
        return ResponseBody(
            EntryReader(EntryOpening(entry: entry, storage: engine.storage), wanted)
        )
    }
}
