import HTTPCaching
import HTTPTypes

extension DownloadStateMachine {
    /// Makes the next request at the URL that was asked for: what its redirects lead to may have
    /// expired.
    mutating func sendFromStart() -> Action {
        chain = RedirectChain(target: target, method: plan.method, home: plan.target.origin)
        if let known = plan.permanentTarget, !isResolved, !distrustsPermanentTarget {
            chain.skip(to: known)
        }
        return send()
    }

    /// Makes the next request where the redirects have led.
    mutating func send() -> Action {
        let request = DownloadRequest(
            kind: nextKind(),
            plan: plan,
            chain: chain,
            bypassesCaches: bypassesCaches
        )
        state = .awaitingHead(request)
        return .send(request)
    }

    /// What to ask for, with what is known now.
    private func nextKind() -> RequestKind {
        if isRevalidating { return .revalidation }
        guard plan.method == .get, !areRangesUntrusted else { return .full }
        guard hasGeneration else {
            let range = bounded(plan.range)
            return range == 0..<Int64.max ? .full : .initialRange(range)
        }
        guard let generation else { return .full }
        guard let validator = generation.validator else { return overlap(generation) ?? .full }
        // A date identifies bytes at the origin that gave it, not at another one.
        if validator.kind == .lastModified, let origin = generation.origin, chain.count > 0,
            origin != chain.target.origin
        {
            return .full
        }
        let end = min(plan.range.upperBound, generation.completeLength ?? .max)
        guard position < end else { return .full }
        let range = bounded(position..<end)
        return plan.isSegment ? .segment(range, generation) : .resume(range, generation)
    }

    /// Row 28: a fresh URL without a validator goes on only where bytes that are held come again.
    private func overlap(_ generation: Generation) -> RequestKind? {
        let held = min(position - plan.range.lowerBound, plan.policy.overlap)
        guard isResolved, let length = generation.completeLength, held > 0 else { return nil }
        let end = min(plan.range.upperBound, length)
        guard position < end else { return nil }
        return .overlap(position - held..<end, generation, held: held)
    }

    /// A range, cut to what one request may ask for.
    private func bounded(_ range: Range<Int64>) -> Range<Int64> {
        guard let limit = plan.policy.maximumRequestLength, limit > 0, !isUnbounded,
            range.upperBound - range.lowerBound > limit
        else { return range }
        return range.lowerBound..<range.lowerBound + limit
    }

    /// The origin throttles this answer: the rest is asked for in pieces.
    ///
    /// - Returns: what to do; nil where pieces could not be joined, or little is left.
    mutating func didThrottle(length: Int64) -> Action? {
        let end = min(plan.range.upperBound, completeLength ?? .max)
        guard case .receiving = state, plan.relay == nil, plan.method == .get,
            !areRangesUntrusted, !isUnbounded, generation?.validator != nil,
            plan.policy.maximumRequestLength == nil, end != .max, end - position >= 2 * length
        else { return nil }
        plan.policy.maximumRequestLength = length
        return send()
    }

    /// Pieces are no faster: the next request asks for all that is missing again.
    mutating func didNotSpeedUp() {
        plan.policy.maximumRequestLength = nil
    }

    /// An attempt brought an error; what is held stays.
    mutating func attemptFailed(
        _ reason: String,
        retryAfter: Duration? = nil,
        isImmediate: Bool = false,
        giveUp: Action? = nil
    ) -> Action {
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
                // Another client waits, and knows better whether to ask once more.
                isImmediate: isImmediate || plan.relay != nil,
                reason: reason
            )
        )
    }

    /// What was held cannot be joined to what the origin sends: all of it is asked for again.
    mutating func restart(_ reason: RestartReason) -> Action {
        restarts += 1
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
