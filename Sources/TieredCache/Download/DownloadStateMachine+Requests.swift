import HTTPCaching
import HTTPTypes

extension DownloadStateMachine {
    /// Makes the next request at the URL that was asked for: what its redirects lead to may have
    /// expired.
    mutating func sendFromStart() -> Action {
        chain = RedirectChain(target: plan.target, method: plan.method)
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
            return plan.range == 0..<Int64.max ? .full : .initialRange(plan.range)
        }
        guard let generation, let validator = generation.validator else { return .full }
        // A date identifies bytes at the origin that gave it, not at another one.
        if validator.kind == .lastModified, let origin = generation.origin, chain.count > 0,
            origin != chain.target.origin
        {
            return .full
        }
        let end = min(plan.range.upperBound, generation.completeLength ?? .max)
        return position < end ? .resume(position..<end, generation) : .full
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
