import HTTPCaching
import HTTPTypes

extension DownloadStateMachine {
    /// Makes the next request at the requested URL: the targets of its redirects may have expired.
    mutating func sendFromStart() -> Action {
        chain = RedirectChain(target: target, method: plan.method, home: plan.target.origin)
        if let known = plan.permanentTarget, !isResolved, !distrustsPermanentTarget {
            chain.skip(to: known)
        }
        return send()
    }

    /// Makes the next request at the current target of the redirects.
    mutating func send() -> Action {
        if isExcluded, isGenerationExcluded != true {
            // What there is came from another host, or before the rule: nothing is joined to it.
            generation = nil
            hasGeneration = isGenerationExcluded != nil
            isRevalidating = false
        }
        let request = DownloadRequest(
            kind: nextKind(),
            plan: plan,
            chain: chain,
            bypassesCaches: bypassesCaches
        )
        state = .awaitingHead(request)
        return .send(request)
    }

    /// Whether nothing of the current URL's host is stored.
    var isExcluded: Bool { plan.excludedHosts.contains { $0.matches(chain.target.origin) } }

    /// The kind of the next request, by the facts known now.
    private func nextKind() -> RequestKind {
        if isRevalidating { return .revalidation }
        guard plan.method == .get, !areRangesUntrusted else { return .full }
        let all = 0..<Int64.max
        let whole: RequestKind = plan.asksForAllAsRange ? .initialRange(all) : .full
        guard hasGeneration else {
            let range = bounded(plan.range)
            return range == all ? whole : .initialRange(range)
        }
        guard let generation else { return whole }
        let end = min(plan.range.upperBound, generation.completeLength ?? .max)
        // All is there already, or more than there should be: only the whole can say.
        guard position < end else { return .full }
        let range = bounded(position..<end)
        if relation != .same || generation.validator == nil,
            let overlap = overlap(generation, before: range)
        {
            return overlap
        }
        guard generation.validator != nil, relation != .other else { return whole }
        return plan.isSegment ? .segment(range, generation) : .resume(range, generation)
    }

    /// How the current URL is related to the one of the generation.
    var relation: ResourceRelation {
        guard let known = generation?.target, provenTarget != chain.target else { return .same }
        return chain.target.relation(to: known)
    }

    /// Row 28: at another URL a download continues only if stored bytes come again.
    ///
    /// Without a tag only if the application has supplied the URL for the same bytes.
    private func overlap(_ generation: Generation, before range: Range<Int64>) -> RequestKind? {
        switch generation.validator?.kind {
        case .entityTag: break
        case .lastModified where relation == .otherQuery || isResolved: break
        case nil where isResolved && generation.completeLength != nil: break
        case .lastModified, nil: return nil
        }
        guard let compared = comparable(before: range.lowerBound) else { return nil }
        let end = compared.upperBound == range.lowerBound ? range.upperBound : compared.upperBound
        return .overlap(
            compared.lowerBound..<end,
            generation,
            stored: Int64(compared.count)
        )
    }

    /// The stored bytes to compare, preferably those right before the first missing one.
    private func comparable(before offset: Int64) -> Range<Int64>? {
        guard let run = storedRun(offset), !run.isEmpty, plan.policy.overlap > 0 else { return nil }
        guard run.lowerBound < offset else {
            return run.lowerBound..<run.lowerBound + min(Int64(run.count), plan.policy.overlap)
        }
        let end = min(run.upperBound, offset)
        return max(run.lowerBound, end - plan.policy.overlap)..<end
    }

    /// The number of bytes stored from the start; nil if none can be compared.
    func comparablePrefix() -> Int64? {
        storedRun(1).map { $0.lowerBound == 0 ? $0.upperBound : 0 }
    }

    /// A range, limited to the maximum length of one request.
    private func bounded(_ range: Range<Int64>) -> Range<Int64> {
        guard let limit = plan.policy.maximumRequestLength, limit > 0, !isUnbounded,
            range.upperBound - range.lowerBound > limit
        else { return range }
        return range.lowerBound..<range.lowerBound + limit
    }

    /// The origin throttles this response: the rest is requested in pieces.
    ///
    /// - Returns: the next action; nil if pieces could not be combined, or little is left.
    mutating func didThrottle(length: Int64) -> Action? {
        let end = min(plan.range.upperBound, completeLength ?? .max)
        guard case .receiving = state, plan.relay == nil, plan.method == .get,
            !areRangesUntrusted, !isUnbounded, generation?.validator != nil,
            plan.policy.maximumRequestLength == nil, end != .max, end - position >= 2 * length
        else { return nil }
        plan.policy.maximumRequestLength = length
        return send()
    }

    /// Pieces are no faster: the next request is for all missing bytes again.
    mutating func didNotSpeedUp() {
        plan.policy.maximumRequestLength = nil
    }

    /// An attempt has failed; stored bytes stay.
    mutating func attemptFailed(
        _ reason: String,
        retryAfter: Duration? = nil,
        isImmediate: Bool = false,
        giveUp: Action? = nil
    ) -> Action {
        // As in ExoPlayer, progress resets the count: a long body may be cut many times.
        if !hasProgressed { attemptsWithoutProgress += 1 }
        hasProgressed = false
        guard attemptsWithoutProgress < max(1, plan.policy.maximumAttempts) else {
            state = .finished
            return giveUp ?? .fail(.attemptsExhausted(attemptsWithoutProgress, reason))
        }
        state = .waiting
        return .wait(
            PendingRetry(
                attempts: attemptsWithoutProgress,
                retryAfter: retryAfter,
                // The client of a relay waits, and can decide itself whether to retry.
                isImmediate: isImmediate || plan.relay != nil,
                reason: reason
            )
        )
    }

    /// The stored bytes cannot be combined with the response: the whole is requested again.
    mutating func restart(_ reason: RestartReason) -> Action {
        restarts += 1
        // An origin behind a balancer may contradict itself at each request, for ever.
        guard restarts <= plan.policy.maximumRestarts else { return fail(.contradiction(reason)) }
        switch reason {
        case .representationChanged:
            generation = nil
            hasContradicted = true
        case .rangesUntrusted:
            guard !areRangesUntrusted else { return fail(.contradiction(reason)) }
            areRangesUntrusted = true
        case .violation:
            guard !bypassesCaches else { return fail(.contradiction(reason)) }
            bypassesCaches = true
        }
        return sendFromStart()
    }
}
