package import HTTPCaching
package import HTTPTypes

extension DownloadStateMachine {
    /// A head has arrived.
    ///
    /// - Parameters:
    ///   - response: Status and fields.
    ///   - responseTime: When it arrived.
    ///   - isFromMachine: Whether it came from an address of this machine.
    ///   - final: Where the owner of the directory has followed redirects to; nil for an origin.
    ///   - canReplaceGeneration: Called only if a new generation would replace another.
    /// - Returns: The next action.
    package mutating func didReceiveHead(
        _ response: HTTPResponse,
        at responseTime: WallTime,
        isFromMachine: Bool = false,
        followedTo final: TargetURI? = nil,
        canReplaceGeneration: () -> Bool
    ) -> Action {
        guard case .awaitingHead(let request) = state else {
            preconditionFailure("a head in \(state)")
        }
        if let final, !chain.didFollow(to: final, staysOutside: plan.policy.staysOutside) {
            return didFail(.fromOwner("the owner of the directory was redirected to \(final)"))
        }
        if plan.relay == nil,
            let action = follow(response, at: responseTime, isFromMachine: isFromMachine)
        {
            return action
        }
        if distrustPermanentTarget(response) { return sendFromStart() }
        var context = ResponseContext(
            method: request.head.method,
            generation: generation,
            responseTime: responseTime,
            policy: plan.policy
        )
        context.relation = relation
        if relation != .same { context.comparablePrefix = comparablePrefix() }
        let relayed = plan.relay.flatMap {
            ResponseDisposition(relaying: response, to: request.kind, by: $0, in: context)
        }
        let disposition =
            relayed ?? ResponseDisposition(of: response, to: request.kind, in: context)
        let action = act(
            on: disposition,
            response: response,
            responseTime: responseTime,
            canReplaceGeneration: canReplaceGeneration
        )
        if case .receiving(var reception) = state {
            reception.isChunked = TransferCoding(in: response.headerFields) == .chunked
            state = .receiving(reception)
        }
        return action
    }

    /// Follows or refuses a redirect; nil if the response is none.
    private mutating func follow(
        _ response: HTTPResponse,
        at responseTime: WallTime,
        isFromMachine: Bool
    ) -> Action? {
        let staysOutside = plan.policy.staysOutside
        if isFromMachine,
            case .refuse(let reason) = chain.didReachMachine(staysOutside: staysOutside)
        {
            return fail(.redirectRefused(reason))
        }
        let step = chain.follow(
            response,
            maximum: plan.policy.maximumRedirects,
            staysOutside: staysOutside,
            at: responseTime
        )
        switch step {
        case .follow: return send()
        case .refuse(let reason): return fail(.redirectRefused(reason))
        case .none: return nil
        }
    }

    private mutating func act(
        on disposition: ResponseDisposition,
        response: HTTPResponse,
        responseTime: WallTime,
        canReplaceGeneration: () -> Bool
    ) -> Action {
        switch disposition {
        case .newGeneration(let start):
            if isPartOfUnjoinable(start) {
                isUnbounded = true
                return send()
            }
            guard !hasGeneration || canReplaceGeneration() else {
                return fail(.representationChanged)
            }
            return begin(start, response: response)
        case .continuing(let range, let length):
            generation?.completeLength = length
            return continueGeneration(from: range.lowerBound, limit: range.upperBound)
        case .comparing(let range, let end, let length):
            return compare(range, until: end, completeLength: length)
        case .repeating(let length, let compared):
            // A request for the following bytes would bring the whole once more.
            if plan.policy.acceptsWholeBodies { extendToEnd() }
            let end = length ?? generation?.completeLength
            generation?.completeLength = end
            let action = continueGeneration(from: compared, limit: end, isWhole: true)
            guard compared > 0, case .receive(let kind) = action else { return action }
            state = .receiving(Reception(limit: end, isWhole: true, comparing: 0..<compared))
            return .compare(kind)
        case .notModified:
            _ = finish(.notModified)
            return .receive(.notModified)
        case .alreadyComplete(let length):
            return finish(.completed(completeLength: length))
        case .rangeNotSatisfiable(let length):
            return fail(.rangeNotSatisfiable(completeLength: length))
        case .retry(let delay):
            return attemptFailed(
                "answered \(response.status.code)" + ignoredWait(in: response, at: responseTime),
                retryAfter: delay,
                giveUp: .finish(.unsuccessful(response))
            )
        case .restart(let reason):
            if reason == .representationChanged, [206, 416].contains(response.status.code),
                relation == .same
            {
                contradictedValidator = generation?.validator
            }
            return restart(reason)
        case .unsuccessful:
            return unsuccessful(response)
        case .unusable(let reason):
            return fail(.unusable(reason))
        }
    }

    /// Receives stored bytes first: right before the missing ones, or alone.
    private mutating func compare(
        _ range: Range<Int64>,
        until end: Int64,
        completeLength length: Int64?
    ) -> Action {
        var reception = Reception(limit: range.upperBound, isWhole: false)
        reception.comparing = range.lowerBound..<end
        reception.isProbe = end != position
        state = .receiving(reception)
        guard !reception.isProbe else { return .compare(nil) }
        generation?.completeLength = length
        return .compare(.continuing(from: end, completeLength: length))
    }

    /// A requested wait that is too long to be honoured, as a text that explains the failure.
    private func ignoredWait(in response: HTTPResponse, at responseTime: WallTime) -> String {
        let asked = RetryAfter.delay(
            in: response.headerFields,
            now: responseTime,
            maximum: .seconds(Int64(1) << 33)
        )
        guard let asked, asked > plan.policy.maximumRetryAfter else { return "" }
        return " and asks to wait for \(asked.roughly)"
    }

    /// Whether a bounded request has brought a part that no further part can be combined with.
    private func isPartOfUnjoinable(_ start: GenerationStart) -> Bool {
        guard case .awaitingHead(let request) = state, case .initialRange(let range) = request.kind,
            range != plan.range, start.validator == nil, let end = start.end
        else { return false }
        return end < min(plan.range.upperBound, start.completeLength ?? .max)
    }

    /// Whether to retry at the requested URL, because the known target of its redirects has failed.
    private mutating func distrustPermanentTarget(_ response: HTTPResponse) -> Bool {
        guard plan.permanentTarget != nil, !distrustsPermanentTarget, !isResolved,
            // 412 and 416 speak of the conditions and the range, not of the URL.
            response.status.code >= 400, response.status.code != 416, response.status.code != 412
        else { return false }
        distrustsPermanentTarget = true
        return true
    }

    private mutating func begin(_ start: GenerationStart, response: HTTPResponse) -> Action {
        if plan.wantsWhole(after: start, response: response) { extendToEnd() }
        noteReplacement(by: start)
        var start = start
        start.contradictsStored = hasContradicted
        // The whole has the validator that its ranges had: it is the ranges that are wrong.
        if hasContradicted, let contradictedValidator, contradictedValidator == start.validator {
            areRangesUntrusted = true
        }
        start.areRangesUntrusted = areRangesUntrusted
        (hasContradicted, contradictedValidator) = (false, nil)
        hasGeneration = true
        isGenerationExcluded = isExcluded
        isRevalidating = false
        generation = Generation(
            validator: start.validator,
            completeLength: start.completeLength,
            target: chain.target,
            promised: start.coding == .identity && response.status.code != 203
                ? ContentDigest.promised(
                    in: response.headerFields,
                    isPart: response.status == .partialContent
                ) : []
        )
        provenTarget = nil
        position = start.offset
        state = .receiving(
            Reception(
                limit: start.end,
                isWhole: start.offset == 0 && start.end == start.completeLength
            )
        )
        return .receive(.newGeneration(start))
    }

    /// Counts progress from zero for a provably new representation, a limited number of times.
    private mutating func noteReplacement(by start: GenerationStart) {
        guard let validator = start.validator, validator != generation?.validator,
            replacements <= plan.policy.maximumRestarts
        else { return }
        if hasGeneration { replacements += 1 }
        furthest = start.offset
    }

    private mutating func continueGeneration(
        from offset: Int64,
        limit: Int64?,
        isWhole: Bool = false
    ) -> Action {
        position = offset
        state = .receiving(Reception(limit: limit, isWhole: isWhole))
        return .receive(.continuing(from: offset, completeLength: completeLength))
    }

    /// Row 20: a redirect may have led to an expired signed URL; the requested URL is retried once
    /// for a new one.
    private mutating func unsuccessful(_ response: HTTPResponse) -> Action {
        if [401, 403, 410].contains(response.status.code), chain.count > 0, !hasRefreshedRedirect {
            hasRefreshedRedirect = true
            return sendFromStart()
        }
        guard [401, 403, 410].contains(response.status.code), plan.resolve != nil, !hasResolved
        else { return finish(.unsuccessful(response)) }
        hasResolved = true
        state = .resolving(response)
        return .resolve(status: response.status.code)
    }

    /// The exchange failed, before or in its body; the bytes received are a valid prefix (row 24).
    ///
    /// - Parameters:
    ///   - error: the failure.
    ///   - isOffline: whether the machine has no network.
    /// - Returns: the next action.
    package mutating func didFail(_ error: TransportError, isOffline: Bool = false) -> Action {
        if let failure = error.owner {
            // No failure of the origin, which has the rest of this download: another wait for the
            // owner might take the time that a reader has.
            plan.shared?.failure = failure
            hasProgressed = false
            return sendFromStart()
        }
        let hadHead = if case .receiving = state { true } else { false }
        switch error.kind {
        case .cancelled: return fail(.cancelled)
        case .shutDown: return fail(.shutDown)
        case .invalidRequest: return fail(.invalidRequest(error))
        // A certificate, or a syntax, is as wrong at the next attempt; but what follows the bytes
        // that this one has brought may be right.
        case _ where error.isFinal && !hasProgressed: return fail(.transport(error))
        default: break
        }
        // An unsafe request must not run twice; before a connection it has not run at all.
        let isSafe = plan.method == .get || plan.method == .head
        guard isSafe || error.kind == .connect || error.kind == .nameResolution else {
            return fail(.transport(error))
        }
        // The client has the head already, and nothing can be combined with its bytes of the body.
        if plan.relay != nil, hadHead, generation?.validator == nil {
            return fail(.transport(error))
        }
        if isOffline { return waitForNetwork(error.phrase) }
        // The origin was just closing a kept-alive connection: not a failure of the request.
        let isImmediate = error.kind == .closedEarly && !hadHead && attemptsWithoutProgress == 0
        return attemptFailed(
            error.phrase,
            isImmediate: isImmediate,
            giveUp: .fail(.attemptsExhausted(attemptsWithoutProgress + 1, error.phrase, error))
        )
    }
}

extension Duration {
    /// A long time in its largest unit, rounded down, for people: `90 s`, `5 min`, `3 h`, `31
    /// years`.
    fileprivate var roughly: String {
        let units: [(name: String, seconds: Int64)] = [
            ("years", 31_557_600), ("days", 86_400), ("h", 3600), ("min", 60),
        ]
        let seconds = components.seconds
        guard let unit = units.first(where: { seconds >= 2 * $0.seconds }) else {
            return "\(seconds) s"
        }
        return "\(seconds / unit.seconds) \(unit.name)"
    }
}
