import FoundationEssentials
import HTTPCaching

/// Asks memory, then disk, then the rules of freshness; never the origin, never a download slot.
struct LookupOperation: Sendable {
    /// What is to be done at the origin, and what is held meanwhile.
    struct Remainder: Sendable {
        enum Task: Sendable {
            /// Fetch as if nothing were held.
            case fetch
            /// Ask whether what is held, all that is wanted, is still current.
            case validate
            /// Fetch what is missing of a part that is no longer fresh; the first answer tells
            /// whether the part is still current.
            case complete
        }

        var task: Task
        var reason: CacheStatus.ForwardReason
        /// What was found, whether or not it can be used.
        var held: HeldResponse?
        /// Other variants, of which the origin may say that one is the answer (RFC 9111 §4.1).
        var variants: [HeldResponse] = []
        /// When what is held may be served although the origin did not confirm it.
        var staleOnError = ReuseDecision.StaleOnError.never
        /// A part that nothing can be joined to, and that lacks what is wanted.
        var lacking: DiskEntry?

        /// Whether what is held may stand in for an error that the origin answers to validation.
        ///
        /// RFC 9111 §4.3.3 lets an intermediary act as if the origin had not answered, unless the
        /// origin has said for how long (RFC 5861 §4).
        func mayReplaceError(_ rules: CacheRules) -> Bool {
            guard let held, held.head.status < 500 else { return false }
            switch staleOnError {
            case .never: return false
            case .error: return true
            case .disconnected: return held.head.facts.control(rules).staleIfError == nil
            }
        }

        /// What a 304 is about.
        func held(confirmedBy confirmation: Fill.Confirmation) -> HeldResponse? {
            (held.map { [$0] } ?? variants).first {
                $0.head.hasValidators(of: confirmation.asked)
            }
        }

        var isCompletion: Bool {
            if case .complete = task { true } else { false }
        }
    }

    /// What answers, wholly or with what is on its way.
    enum Finding: Sendable {
        /// What is held, and what is missing of it once the body comes there.
        case held(HeldResponse, WantedRange, ReuseDecision)
        /// A part by itself.
        case part(HeldPart)
        /// What is held so far of a part that a flight is bringing.
        case underWay(HeldResponse, DiskEntry, WantedRange, Subscription)
    }

    typealias Answer = LookupAnswer<Finding, Remainder>

    let storage: Storage
    let transfers: Transfers
    let judge: ReuseJudge
    let request: CacheRequest

    private var recorder: Recorder { storage.recorder }
    private var mayAskOrigin: Bool {
        request.policy != .cacheOnly && !request.facts.cacheControl.onlyIfCached
    }

    /// Looks up without blocking the calling thread on the disk.
    func perform() async throws(CacheError) -> Answer {
        guard request.isCacheable else {
            recorder.didMiss(request.key, .bypassed)
            guard request.policy != .cacheOnly else { throw notCached() }
            return .incomplete(Remainder(task: .fetch, reason: .method))
        }
        let held = try await held()
        if let part = try await part(insteadOf: held) {
            return .complete(.part(part))
        }
        guard let held else { return try miss(.uriMiss, .absent) }
        return try await decide(about: held)
    }

    /// What ``perform()`` would leave over of a plain request, where it takes no wait to see that nothing
    /// is stored, or that memory has what the origin must confirm; nil otherwise.
    func immediateRemainder() throws(CacheError) -> Remainder? {
        guard request.isPlainGet else { return nil }
        guard let entry = storage.memory.entry(forKey: request.key) else {
            guard storage.isKnownAbsent(request.key) else { return nil }
            recorder.didMiss(request.key, .absent)
            return Remainder(task: .fetch, reason: .uriMiss)
        }
        let held = HeldResponse(entry, key: request.key)
        guard entry.head.mayAnswer(request), isSelected(held) else { return nil }
        let decision = decision(about: held)
        guard decision.action == .validate, next(after: held) == nil else { return nil }
        return try remainder(validating: held, decision)
    }

    /// Whether ``perform()`` would answer in full; counts nothing, reads no body.
    func wouldAnswer() async -> Bool {
        guard request.isCacheable else { return false }
        do throws(CacheError) {
            let held = try await held()
            guard try await part(insteadOf: held) == nil else { return true }
            guard let held else { return false }
            guard decision(about: held).isUse,
                let wanted = try WantedRange.resolve(
                    request,
                    completeLength: held.completeLength
                )
            else { return false }
            return held.holds(wanted)
        } catch {
            // A range that does not exist is not held.
            return false
        }
    }

    func decision(about held: HeldResponse) -> ReuseDecision {
        judge.decision(about: held.head, for: request)
    }

    /// What is held for the request: of several variants the one that it selects, else any.
    func held() async throws(CacheError) -> HeldResponse? {
        guard let primary = try await held(under: request.key) else { return nil }
        guard !isSelected(primary) else { return primary }
        for key in request.key.variants {
            guard let variant = try await held(under: key), isSelected(variant) else { continue }
            return variant
        }
        return primary
    }

    /// The whole variants with a tag that are held for the target, selected or not.
    func variantsToOffer() async throws(CacheError) -> [HeldResponse] {
        var variants: [HeldResponse] = []
        for key in [request.key] + request.key.variants {
            guard let held = try await held(under: key), held.isOfferable else { continue }
            variants.append(held)
        }
        return variants
    }

    private func isSelected(_ held: HeldResponse) -> Bool {
        VaryMatch.matches(held.head.selectingFields, request: request.fields)
    }

    private func held(under key: CacheKey) async throws(CacheError) -> HeldResponse? {
        // What is pinned must be on disk.
        if !request.isPinned, let entry = storage.memory.entry(forKey: key) {
            return entry.head.mayAnswer(request) ? HeldResponse(entry, key: key) : nil
        }
        return try await storage.entry(for: key, isUse: !request.isPrefetch).flatMap(held(by:))
    }

    private func held(by entry: DiskEntry) -> HeldResponse? {
        guard let head = StoredResponse(encoded: entry.metadata), head.mayAnswer(request) else {
            return nil
        }
        return HeldResponse(head: head, entry: entry)
    }

    private func miss(
        _ reason: CacheStatus.ForwardReason,
        _ cause: CacheEvent.MissReason,
        lacking held: HeldResponse? = nil
    ) throws(CacheError) -> Answer {
        recorder.didMiss(request.key, cause)
        guard mayAskOrigin else { throw notCached() }
        var remainder = Remainder(task: .fetch, reason: reason)
        if case .disk(let entry) = held?.body { remainder.lacking = entry }
        return .incomplete(remainder)
    }

    private func decide(about held: HeldResponse) async throws(CacheError) -> Answer {
        let decision = decision(about: held)
        switch decision.action {
        case .use, .useAndRevalidate:
            return try await use(held, decision)
        case .validate:
            if let next = next(after: held) {
                return try await use(next, self.decision(about: next))
            }
            return .incomplete(try remainder(validating: held, decision))
        case .forward:
            return try await forward(decision)
        case .refuse:
            recorder.didMiss(request.key, decision.reason == .varyMiss ? .variant : .stale)
            throw notCached()
        }
    }

    /// What is being brought in the place of what is pinned, where that may be used as it is.
    private func next(after held: HeldResponse) -> HeldResponse? {
        let next = storage.disk.openStore?.successor(of: held.key).flatMap(self.held(by:))
        return next.flatMap { decision(about: $0).action == .use ? $0 : nil }
    }

    private func forward(_ decision: ReuseDecision) async throws(CacheError) -> Answer {
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
        _ held: HeldResponse,
        _ decision: ReuseDecision
    ) async throws(CacheError) -> Answer {
        let wanted = try WantedRange.resolve(request, completeLength: held.completeLength)
        guard let wanted else { return try partialOfUnknownLength(held) }
        if !held.holds(wanted) {
            guard mayAskOrigin else {
                recorder.didMiss(request.key, .partial)
                throw notCached("it is held only in part")
            }
            if held.head.validator == nil, let answer = try await incomplete(held, wanted) {
                return answer
            }
        } else if request.endsInMiddle(of: held), mayAskOrigin,
            let answer = try await incomplete(held, wanted)
        {
            return answer
        }
        return .complete(.held(held, wanted, decision))
    }

    /// What is to be asked about what is held but must not be used as it is.
    func remainder(
        validating held: HeldResponse,
        _ decision: ReuseDecision
    ) throws(CacheError) -> Remainder {
        let reason = decision.forwardReason ?? .stale
        let wanted = try WantedRange.resolve(request, completeLength: held.completeLength)
        // In this order: what a transfer has brought that ends between the two looks is seen by the
        // second one.
        let isUnderWay = wanted.map { self.isUnderWay(held, $0) } ?? false
        recorder.didMiss(request.key, decision.reason == .request ? .bypassed : .stale)
        var remainder = Remainder(task: .fetch, reason: reason, held: held)
        guard let wanted else { return remainder }
        if held.holds(wanted) {
            // Without a validator it is fetched anew, and served only if the origin fails.
            remainder.task = held.head.facts.hasValidator ? .validate : .fetch
            remainder.staleOnError = decision.staleOnError
            return remainder
        }
        if held.head.validator != nil {
            remainder.task = .complete
        } else if isUnderWay {
            remainder.task = .validate
        }
        return remainder
    }

    /// Whether a flight is about to bring the rest of a part that no other can be joined to, and which
    /// it may share if that is current.
    private func isUnderWay(_ held: HeldResponse, _ wanted: WantedRange) -> Bool {
        guard request.scope != nil, held.head.validator == nil, held.head.facts.hasValidator,
            case .disk(let entry) = held.body,
            let flight = transfers.flightUnderWay(for: request, entry, wanted)
        else { return false }
        flight.cancel()
        return true
    }

    /// A suffix of something whose end has not been seen: only the origin knows where it begins.
    private func partialOfUnknownLength(_ held: HeldResponse) throws(CacheError) -> Answer {
        guard request.policy != .cacheOnly else { throw notCached("its length is not known") }
        return try miss(.partial, .partial)
    }

    /// A part that nothing can be joined to, unless the flight that brings it is still under way.
    ///
    /// - Returns: nil where the flight has brought all meanwhile.
    private func incomplete(
        _ held: HeldResponse,
        _ wanted: WantedRange
    ) async throws(CacheError) -> Answer? {
        guard case .disk(let entry) = held.body,
            let flight = transfers.flightUnderWay(for: request, entry, wanted)
        else {
            guard !held.holds(wanted) || request.endsInMiddle(of: held) else { return nil }
            return try miss(.partial, .partial, lacking: held)
        }
        recorder.didMiss(request.key, .partial)
        return .complete(.underWay(held, entry, wanted, flight))
    }

    private func notCached(_ why: String = "it is not held") -> CacheError {
        CacheError(
            .notCached,
            "cannot answer \(request.target.redacted) from the cache alone: \(why)"
        )
    }
}

extension CacheRequest {
    /// Whether a reader that begins with what is held comes to a byte that can never follow.
    ///
    /// A part without a strong validator cannot be continued (invariant 3): its reader needs a new
    /// generation before its first byte, since none can follow after that.
    func endsInMiddle(of held: HeldResponse) -> Bool {
        guard let scope, held.head.validator == nil else { return false }
        do throws(CacheError) {
            let wanted = try wanted(in: scope, completeLength: held.completeLength)
            return wanted.map { !held.holds($0) } ?? true
        } catch {
            // What does not exist is not waited for.
            return false
        }
    }
}
