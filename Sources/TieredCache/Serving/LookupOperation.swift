import FoundationEssentials
import HTTPCaching

/// Looks in memory, then on disk, and applies the rules of reuse; never asks the origin, never
/// waits for a download slot.
struct LookupOperation: Sendable {
    /// The work left for the origin, and the stored response that it concerns.
    struct Remainder: Sendable {
        enum Task: Sendable {
            /// Fetch without regard to stored responses.
            case fetch
            /// Validate a stored response that has all wanted bytes.
            case validate
            /// Fetch the missing bytes of an incomplete response that is no longer fresh; the first
            /// response of the origin also says whether it is still current.
            case complete
        }

        var task: Task
        var reason: CacheStatus.ForwardReason
        /// The stored response that the lookup found, usable or not.
        var stored: StoredEntry?
        /// Other stored variants, one of which the origin may select (RFC 9111 §4.1).
        var variants: [StoredEntry] = []
        /// On which failures of the origin the stored response may be served.
        var staleOnError = ReuseDecision.StaleOnError.never
        /// An incomplete response that cannot be combined, and lacks wanted bytes.
        var lacking: DiskEntry?

        /// Whether the stored response may replace an error status that answers its validation.
        ///
        /// RFC 9111 §4.3.3 lets an intermediary act as if the origin had not answered, unless
        /// `stale-if-error` limits the time (RFC 5861 §4).
        func mayReplaceError(_ rules: CacheRules) -> Bool {
            guard let stored, stored.head.status < 500 else { return false }
            switch staleOnError {
            case .never: return false
            case .error: return true
            case .disconnected: return stored.head.facts.control(rules).staleIfError == nil
            }
        }

        /// The stored response that a 304 confirms.
        func entry(confirmedBy confirmation: SharedTransfers.Confirmation) -> StoredEntry? {
            (stored.map { [$0] } ?? variants).first {
                $0.head.hasValidators(of: confirmation.asked)
            }
        }

        var isCompletion: Bool {
            if case .complete = task { true } else { false }
        }
    }

    /// A response, complete or with bytes still in transfer.
    enum Finding: Sendable {
        /// A stored response; missing bytes are fetched when the body reaches them.
        case stored(StoredEntry, WantedRange, ReuseDecision)
        /// The stored bytes of an incomplete response that a running transfer completes.
        case underWay(StoredEntry, DiskEntry, WantedRange, Subscription)
    }

    typealias Outcome = LookupResult<Finding, Remainder>

    let storage: Storage
    let transfers: Transfers
    let judge: ReuseJudge
    let request: CacheRequest

    private var recorder: Recorder { storage.recorder }
    private var mayAskOrigin: Bool {
        request.policy != .cacheOnly && !request.facts.cacheControl.onlyIfCached
    }

    /// Looks up without blocking the calling thread on the disk.
    func perform() async throws(CacheError) -> Outcome {
        try request.checkURL()
        guard request.isCacheable else {
            recorder.didMiss(request.key, because: .bypassed)
            guard request.policy != .cacheOnly else { throw notCached() }
            return .incomplete(Remainder(task: .fetch, reason: .method))
        }
        guard let stored = try await storedEntry() else {
            return try miss(.absent, reason: .uriMiss)
        }
        return try await decide(about: stored)
    }

    /// The remainder that ``perform()`` would return, if it can be determined without a wait.
    ///
    /// That is so for a plain request if nothing is stored, or if memory has a response that needs
    /// validation; nil otherwise.
    func immediateRemainder() throws(CacheError) -> Remainder? {
        guard request.isPlainGet else { return nil }
        try request.checkURL()
        guard let entry = storage.memory.entry(forKey: request.key) else {
            guard storage.isKnownAbsent(request.key) else { return nil }
            recorder.didMiss(request.key, because: .absent)
            return Remainder(task: .fetch, reason: .uriMiss)
        }
        let stored = StoredEntry(entry, key: request.key)
        guard judge.mayAnswer(request, with: entry.head), entry.isExpected(by: request),
            isSelected(stored)
        else { return nil }
        let decision = decision(about: stored)
        guard decision.action == .validate, next(after: stored) == nil else { return nil }
        return remainder(validating: stored, decision: decision)
    }

    /// Whether ``perform()`` would find a complete response; counts nothing, reads no body.
    func wouldAnswer() async -> Bool {
        guard request.isCacheable else { return false }
        do throws(CacheError) {
            guard let stored = try await storedEntry(), decision(about: stored).isUse,
                let wanted = try WantedRange.resolve(
                    for: request,
                    completeLength: stored.completeLength
                )
            else { return false }
            return stored.contains(wanted)
        } catch {
            // An unsatisfiable range is not stored.
            return false
        }
    }

    func decision(about stored: StoredEntry) -> ReuseDecision {
        judge.decision(about: stored.head, for: request)
    }

    /// The stored response for the request: the variant that it selects, otherwise any.
    func storedEntry() async throws(CacheError) -> StoredEntry? {
        // One look for the usual miss: variants are stored beside a primary entry, and are not
        // found without it.
        guard let primary = try await storedEntry(under: request.key) else { return nil }
        guard !isSelected(primary) else { return primary }
        for key in request.key.variants {
            guard let variant = try await storedEntry(under: key), isSelected(variant) else {
                continue
            }
            return variant
        }
        return primary
    }

    /// The stored complete variants with an entity tag, selected or not.
    func variantsToOffer() async throws(CacheError) -> [StoredEntry] {
        var variants: [StoredEntry] = []
        for key in [request.key] + request.key.variants {
            guard let stored = try await storedEntry(under: key), stored.isOfferable else {
                continue
            }
            variants.append(stored)
        }
        return variants
    }

    private func isSelected(_ stored: StoredEntry) -> Bool {
        stored.head.isSelected(by: request.fields)
    }

    private func storedEntry(under key: CacheKey) async throws(CacheError) -> StoredEntry? {
        // A pinned request needs an entry on disk.
        if !request.isPinned, let entry = storage.memory.entry(forKey: key),
            entry.isExpected(by: request)
        {
            return judge.mayAnswer(request, with: entry.head) ? StoredEntry(entry, key: key) : nil
        }
        return try await storage.entry(for: key, isUse: !request.isPrefetch).flatMap(
            storedEntry(by:)
        )
    }

    private func storedEntry(by entry: DiskEntry) -> StoredEntry? {
        guard let head = StoredResponse(encoded: entry.metadata),
            judge.mayAnswer(request, with: head)
        else {
            return nil
        }
        return StoredEntry(head: head, entry: entry)
    }

    private func miss(
        _ cause: MediaCache.Event.MissReason,
        reason: CacheStatus.ForwardReason,
        lacking stored: StoredEntry? = nil
    ) throws(CacheError) -> Outcome {
        recorder.didMiss(request.key, because: cause)
        guard mayAskOrigin else { throw notCached() }
        var remainder = Remainder(task: .fetch, reason: reason)
        if case .disk(let entry) = stored?.body { remainder.lacking = entry }
        return .incomplete(remainder)
    }

    private func decide(about stored: StoredEntry) async throws(CacheError) -> Outcome {
        let decision = decision(about: stored)
        switch decision.action {
        case .useAndRevalidate where isBeyondEnd(of: stored), .validate:
            if let next = next(after: stored) {
                return try await use(next, decision: self.decision(about: next))
            }
            return .incomplete(remainder(validating: stored, decision: decision))
        case .use, .useAndRevalidate:
            return try await use(stored, decision: decision)
        case .forward:
            return try await forward(decision)
        case .refuse:
            recorder.didMiss(request.key, because: decision.reason == .varyMiss ? .variant : .stale)
            throw notCached()
        }
    }

    /// The entry that is about to replace a pinned one, if it may be used without validation.
    private func next(after stored: StoredEntry) -> StoredEntry? {
        let next = storage.disk.openStore?.successor(of: stored.key).flatMap(self.storedEntry(by:))
        return next.flatMap { decision(about: $0).action == .use ? $0 : nil }
    }

    private func forward(_ decision: ReuseDecision) async throws(CacheError) -> Outcome {
        let isVariant = decision.reason == .varyMiss
        let answer = try miss(
            isVariant ? .variant : .bypassed,
            reason: decision.forwardReason ?? .request
        )
        guard isVariant, request.range == nil, case .incomplete(var remainder) = answer else {
            return answer
        }
        remainder.variants = try await variantsToOffer()
        return .incomplete(remainder)
    }

    private func use(
        _ stored: StoredEntry,
        decision: ReuseDecision
    ) async throws(CacheError) -> Outcome {
        let wanted = try WantedRange.resolve(for: request, completeLength: stored.completeLength)
        guard let wanted else { return try partialOfUnknownLength(stored) }
        if !stored.contains(wanted) {
            guard mayAskOrigin else {
                recorder.didMiss(request.key, because: .partial)
                throw notCached("it is stored only in part")
            }
            if stored.head.validator == nil,
                let answer = try await incomplete(stored, wanted: wanted)
            {
                return answer
            }
        } else if request.endsInMiddle(of: stored), mayAskOrigin,
            let answer = try await incomplete(stored, wanted: wanted)
        {
            return answer
        }
        return .complete(.stored(stored, wanted, decision))
    }

    /// The origin's work for a stored response that must not be used without validation.
    func remainder(
        validating stored: StoredEntry,
        decision: ReuseDecision
    ) -> Remainder {
        let reason = decision.forwardReason ?? .stale
        // Nil too for a range that does not exist in it: only the origin knows what has by now.
        let wanted = WantedRange(request.range, completeLength: stored.completeLength)
        // In this order: bytes of a transfer that ends between the two checks are seen by the
        // second.
        let isUnderWay = wanted.map { self.isUnderWay(stored, wanted: $0) } ?? false
        recorder.didMiss(request.key, because: decision.reason == .request ? .bypassed : .stale)
        var remainder = Remainder(task: .fetch, reason: reason, stored: stored)
        guard let wanted else {
            if isBeyondEnd(of: stored) {
                // Within `stale-while-revalidate` it may be used whatever the origin does.
                remainder.staleOnError = decision.isUse ? .error : decision.staleOnError
            }
            return remainder
        }
        if stored.contains(wanted) {
            // Without a validator it is fetched again, and served only if the origin fails.
            remainder.task = stored.head.facts.hasValidator ? .validate : .fetch
            remainder.staleOnError = decision.staleOnError
            return remainder
        }
        if stored.head.validator != nil {
            remainder.task = .complete
        } else if isUnderWay {
            remainder.task = .validate
        }
        return remainder
    }

    /// Whether the range does not exist in a stored response; it may in what the origin has by now.
    private func isBeyondEnd(of stored: StoredEntry) -> Bool {
        stored.completeLength != nil
            && WantedRange(request.range, completeLength: stored.completeLength) == nil
    }

    /// Whether a running transfer may bring the rest of a response that no other transfer can
    /// complete.
    ///
    /// The request may share that transfer if the response is still current.
    private func isUnderWay(_ stored: StoredEntry, wanted: WantedRange) -> Bool {
        guard request.scope != nil, stored.head.validator == nil, stored.head.facts.hasValidator,
            case .disk(let entry) = stored.body,
            let transfer = transfers.transferUnderWay(
                for: request,
                entry: entry,
                head: stored.head,
                wanted: wanted
            )
        else { return false }
        transfer.cancel()
        return true
    }

    /// A suffix of a response of unknown length: only the origin can tell where it starts.
    private func partialOfUnknownLength(_ stored: StoredEntry) throws(CacheError) -> Outcome {
        guard request.policy != .cacheOnly else { throw notCached("its length is unknown") }
        return try miss(.partial, reason: .partial)
    }

    /// A response that no other transfer can complete: shares the transfer that brings it, if it
    /// runs.
    ///
    /// - Returns: nil if that transfer has brought all wanted bytes meanwhile.
    private func incomplete(
        _ stored: StoredEntry,
        wanted: WantedRange
    ) async throws(CacheError) -> Outcome? {
        guard case .disk(let entry) = stored.body,
            let transfer = transfers.transferUnderWay(
                for: request,
                entry: entry,
                head: stored.head,
                wanted: wanted
            )
        else {
            guard !stored.contains(wanted) || request.endsInMiddle(of: stored) else { return nil }
            return try miss(.partial, reason: .partial, lacking: stored)
        }
        recorder.didMiss(request.key, because: .partial)
        return .complete(.underWay(stored, entry, wanted, transfer))
    }

    private func notCached(_ why: String = "it is not stored") -> CacheError {
        CacheError(
            .notCached,
            "cannot answer \(request.target.redacted) from the cache alone: \(why)"
        )
    }
}

extension CacheRequest {
    /// Whether a reader of the stored response would reach a byte that no transfer can bring.
    ///
    /// An incomplete response without a strong validator cannot be continued (invariant 3): its
    /// reader needs a new generation before its first byte, since none can follow later.
    func endsInMiddle(of stored: StoredEntry) -> Bool {
        guard let scope, stored.head.validator == nil else { return false }
        do throws(CacheError) {
            let wanted = try wanted(in: scope, completeLength: stored.completeLength)
            return wanted.map { !stored.contains($0) } ?? true
        } catch {
            // A range that does not exist is not waited for.
            return false
        }
    }
}
