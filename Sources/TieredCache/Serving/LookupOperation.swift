import FoundationEssentials
import HTTPCaching

/// Asks memory, then disk, then the rules of freshness; never the origin, never a download slot.
struct LookupOperation: Sendable {
    /// What is to be done at the origin, and what is stored meanwhile.
    struct Remainder: Sendable {
        enum Task: Sendable {
            /// Fetch as if nothing were stored.
            case fetch
            /// Ask whether what is stored, all that is wanted, is still current.
            case validate
            /// Fetch what is missing of a part that is no longer fresh; the first answer tells
            /// whether the part is still current.
            case complete
        }

        var task: Task
        var reason: CacheStatus.ForwardReason
        /// What was found, whether or not it can be used.
        var stored: StoredEntry?
        /// Other variants, of which the origin may say that one is the answer (RFC 9111 §4.1).
        var variants: [StoredEntry] = []
        /// When what is stored may be served although the origin did not confirm it.
        var staleOnError = ReuseDecision.StaleOnError.never
        /// A part that nothing can be joined to, and that lacks what is wanted.
        var lacking: DiskEntry?

        /// Whether what is stored may stand in for an error that the origin answers to validation.
        ///
        /// RFC 9111 §4.3.3 lets an intermediary act as if the origin had not answered, unless the
        /// origin has said for how long (RFC 5861 §4).
        func mayReplaceError(_ rules: CacheRules) -> Bool {
            guard let stored, stored.head.status < 500 else { return false }
            switch staleOnError {
            case .never: return false
            case .error: return true
            case .disconnected: return stored.head.facts.control(rules).staleIfError == nil
            }
        }

        /// What a 304 is about.
        func entry(confirmedBy confirmation: SharedTransfers.Confirmation) -> StoredEntry? {
            (stored.map { [$0] } ?? variants).first {
                $0.head.hasValidators(of: confirmation.asked)
            }
        }

        var isCompletion: Bool {
            if case .complete = task { true } else { false }
        }
    }

    /// What answers, wholly or with what is on its way.
    enum Finding: Sendable {
        /// What is stored, and what is missing of it once the body comes there.
        case stored(StoredEntry, WantedRange, ReuseDecision)
        /// A part by itself.
        case part(StoredPart)
        /// What is stored so far of a part that a transfer is bringing.
        case underWay(StoredEntry, DiskEntry, WantedRange, Subscription)
    }

    typealias Outcome = LookupAnswer<Finding, Remainder>

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
            recorder.didMiss(request.key, .bypassed)
            guard request.policy != .cacheOnly else { throw notCached() }
            return .incomplete(Remainder(task: .fetch, reason: .method))
        }
        let stored = try await storedEntry()
        if let part = try await part(insteadOf: stored) {
            return .complete(.part(part))
        }
        guard let stored else { return try miss(.uriMiss, .absent) }
        return try await decide(about: stored)
    }

    /// What ``perform()`` would leave over of a plain request, where it takes no wait to see that
    /// nothing is stored, or that memory has what the origin must confirm; nil otherwise.
    func immediateRemainder() throws(CacheError) -> Remainder? {
        guard request.isPlainGet else { return nil }
        try request.checkURL()
        guard let entry = storage.memory.entry(forKey: request.key) else {
            guard storage.isKnownAbsent(request.key) else { return nil }
            recorder.didMiss(request.key, .absent)
            return Remainder(task: .fetch, reason: .uriMiss)
        }
        let stored = StoredEntry(entry, key: request.key)
        guard entry.head.mayAnswer(request), isSelected(stored) else { return nil }
        let decision = decision(about: stored)
        guard decision.action == .validate, next(after: stored) == nil else { return nil }
        return try remainder(validating: stored, decision)
    }

    /// Whether ``perform()`` would answer in full; counts nothing, reads no body.
    func wouldAnswer() async -> Bool {
        guard request.isCacheable else { return false }
        do throws(CacheError) {
            let stored = try await storedEntry()
            guard try await part(insteadOf: stored) == nil else { return true }
            guard let stored else { return false }
            guard decision(about: stored).isUse,
                let wanted = try WantedRange.resolve(
                    request,
                    completeLength: stored.completeLength
                )
            else { return false }
            return stored.contains(wanted)
        } catch {
            // A range that does not exist is not stored.
            return false
        }
    }

    func decision(about stored: StoredEntry) -> ReuseDecision {
        judge.decision(about: stored.head, for: request)
    }

    /// What is held for the request: of several variants the one that it selects, else any.
    func storedEntry() async throws(CacheError) -> StoredEntry? {
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

    /// The whole variants with a tag that are held for the target, selected or not.
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
        VaryMatch.matches(stored.head.selectingFields, request: request.fields)
    }

    private func storedEntry(under key: CacheKey) async throws(CacheError) -> StoredEntry? {
        // What is pinned must be on disk.
        if !request.isPinned, let entry = storage.memory.entry(forKey: key) {
            return entry.head.mayAnswer(request) ? StoredEntry(entry, key: key) : nil
        }
        return try await storage.entry(for: key, isUse: !request.isPrefetch).flatMap(
            storedEntry(by:)
        )
    }

    private func storedEntry(by entry: DiskEntry) -> StoredEntry? {
        guard let head = StoredResponse(encoded: entry.metadata), head.mayAnswer(request) else {
            return nil
        }
        return StoredEntry(head: head, entry: entry)
    }

    private func miss(
        _ reason: CacheStatus.ForwardReason,
        _ cause: MediaCache.Event.MissReason,
        lacking stored: StoredEntry? = nil
    ) throws(CacheError) -> Outcome {
        recorder.didMiss(request.key, cause)
        guard mayAskOrigin else { throw notCached() }
        var remainder = Remainder(task: .fetch, reason: reason)
        if case .disk(let entry) = stored?.body { remainder.lacking = entry }
        return .incomplete(remainder)
    }

    private func decide(about stored: StoredEntry) async throws(CacheError) -> Outcome {
        let decision = decision(about: stored)
        switch decision.action {
        case .use, .useAndRevalidate:
            return try await use(stored, decision)
        case .validate:
            if let next = next(after: stored) {
                return try await use(next, self.decision(about: next))
            }
            return .incomplete(try remainder(validating: stored, decision))
        case .forward:
            return try await forward(decision)
        case .refuse:
            recorder.didMiss(request.key, decision.reason == .varyMiss ? .variant : .stale)
            throw notCached()
        }
    }

    /// What is being brought in the place of what is pinned, where that may be used as it is.
    private func next(after stored: StoredEntry) -> StoredEntry? {
        let next = storage.disk.openStore?.successor(of: stored.key).flatMap(self.storedEntry(by:))
        return next.flatMap { decision(about: $0).action == .use ? $0 : nil }
    }

    private func forward(_ decision: ReuseDecision) async throws(CacheError) -> Outcome {
        let isVariant = decision.reason == .varyMiss
        let answer = try miss(
            decision.forwardReason ?? .request,
            isVariant ? .variant : .bypassed
        )
        guard isVariant, request.range == nil, case .incomplete(var remainder) = answer else {
            return answer
        }
        remainder.variants = try await variantsToOffer()
        return .incomplete(remainder)
    }

    private func use(
        _ stored: StoredEntry,
        _ decision: ReuseDecision
    ) async throws(CacheError) -> Outcome {
        let wanted = try WantedRange.resolve(request, completeLength: stored.completeLength)
        guard let wanted else { return try partialOfUnknownLength(stored) }
        if !stored.contains(wanted) {
            guard mayAskOrigin else {
                recorder.didMiss(request.key, .partial)
                throw notCached("it is held only in part")
            }
            if stored.head.validator == nil, let answer = try await incomplete(stored, wanted) {
                return answer
            }
        } else if request.endsInMiddle(of: stored), mayAskOrigin,
            let answer = try await incomplete(stored, wanted)
        {
            return answer
        }
        return .complete(.stored(stored, wanted, decision))
    }

    /// What is to be asked about what is stored but must not be used as it is.
    func remainder(
        validating stored: StoredEntry,
        _ decision: ReuseDecision
    ) throws(CacheError) -> Remainder {
        let reason = decision.forwardReason ?? .stale
        let wanted = try WantedRange.resolve(request, completeLength: stored.completeLength)
        // In this order: what a transfer has brought that ends between the two looks is seen by the
        // second one.
        let isUnderWay = wanted.map { self.isUnderWay(stored, $0) } ?? false
        recorder.didMiss(request.key, decision.reason == .request ? .bypassed : .stale)
        var remainder = Remainder(task: .fetch, reason: reason, stored: stored)
        guard let wanted else { return remainder }
        if stored.contains(wanted) {
            // Without a validator it is fetched anew, and served only if the origin fails.
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

    /// Whether a transfer is about to bring the rest of a part that no other can be joined to, and
    /// which it may share if that is current.
    private func isUnderWay(_ stored: StoredEntry, _ wanted: WantedRange) -> Bool {
        guard request.scope != nil, stored.head.validator == nil, stored.head.facts.hasValidator,
            case .disk(let entry) = stored.body,
            let transfer = transfers.transferUnderWay(for: request, entry, wanted)
        else { return false }
        transfer.cancel()
        return true
    }

    /// A suffix of something whose end has not been seen: only the origin knows where it begins.
    private func partialOfUnknownLength(_ stored: StoredEntry) throws(CacheError) -> Outcome {
        guard request.policy != .cacheOnly else { throw notCached("its length is not known") }
        return try miss(.partial, .partial)
    }

    /// A part that nothing can be joined to, unless the transfer that brings it is still under way.
    ///
    /// - Returns: nil where the transfer has brought all meanwhile.
    private func incomplete(
        _ stored: StoredEntry,
        _ wanted: WantedRange
    ) async throws(CacheError) -> Outcome? {
        guard case .disk(let entry) = stored.body,
            let transfer = transfers.transferUnderWay(for: request, entry, wanted)
        else {
            guard !stored.contains(wanted) || request.endsInMiddle(of: stored) else { return nil }
            return try miss(.partial, .partial, lacking: stored)
        }
        recorder.didMiss(request.key, .partial)
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
    /// Whether a reader that begins with what is stored comes to a byte that can never follow.
    ///
    /// A part without a strong validator cannot be continued (invariant 3): its reader needs a new
    /// generation before its first byte, since none can follow after that.
    func endsInMiddle(of stored: StoredEntry) -> Bool {
        guard let scope, stored.head.validator == nil else { return false }
        do throws(CacheError) {
            let wanted = try wanted(in: scope, completeLength: stored.completeLength)
            return wanted.map { !stored.contains($0) } ?? true
        } catch {
            // What does not exist is not waited for.
            return false
        }
    }
}
