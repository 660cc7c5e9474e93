package import HTTPCaching
package import HTTPTypes

extension DownloadStateMachine {
    /// A head arrived.
    ///
    /// - Parameters:
    ///   - response: Status and fields.
    ///   - responseTime: When it arrived.
    ///   - isFromMachine: Whether it came from an address of this machine.
    ///   - canReplaceGeneration: Asked only where a new generation would replace another.
    /// - Returns: What to do with the exchange.
    package mutating func didReceiveHead(
        _ response: HTTPResponse,
        at responseTime: WallTime,
        isFromMachine: Bool = false,
        canReplaceGeneration: () -> Bool
    ) -> Action {
        guard case .awaitingHead(let request) = state else {
            preconditionFailure("a head in \(state)")
        }
        if plan.relay == nil, let action = follow(response, isFromMachine) { return action }
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
        return act(on: disposition, response, responseTime, canReplaceGeneration)
    }

    /// What a redirect makes of the exchange; nil where the response is none, and may be used.
    private mutating func follow(_ response: HTTPResponse, _ isFromMachine: Bool) -> Action? {
        let staysOutside = plan.policy.staysOutside
        if isFromMachine,
            case .refuse(let reason) = chain.didReachMachine(staysOutside: staysOutside)
        {
            return fail(.redirectRefused(reason))
        }
        let maximum = plan.policy.maximumRedirects
        switch chain.follow(response, maximum: maximum, staysOutside: staysOutside) {
        case .follow: return send()
        case .refuse(let reason): return fail(.redirectRefused(reason))
        case .none: return nil
        }
    }

    private mutating func act(
        on disposition: ResponseDisposition,
        _ response: HTTPResponse,
        _ responseTime: WallTime,
        _ canReplaceGeneration: () -> Bool
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
            return begin(start, response)
        case .continuing(let range, let length):
            generation?.completeLength = length
            return go(on: range.lowerBound, limit: range.upperBound)
        case .comparing(let range, let end, let length):
            return compare(range, until: end, completeLength: length)
        case .repeating(let length, let compared):
            // Asking again for what follows would bring all of it once more.
            if plan.policy.takesWholeAnswers { extendToEnd() }
            let end = length ?? generation?.completeLength
            generation?.completeLength = end
            let action = go(on: compared, limit: end, isWhole: true)
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
                "answered \(response.status.code)" + unheededWait(response, responseTime),
                retryAfter: delay,
                giveUp: .finish(.unsuccessful(response))
            )
        case .restart(let reason):
            if reason == .representationChanged, [206, 416].contains(response.status.code),
                relation == .same
            {
                doubted = generation?.validator
            }
            return restart(reason)
        case .unsuccessful:
            return unsuccessful(response)
        case .unusable(let reason):
            return fail(.unusable(reason))
        }
    }

    /// Bytes that are stored come first: right before what is missing, or by themselves.
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

    /// What an origin asks for that is not waited for: people wonder why nothing happens.
    private func unheededWait(_ response: HTTPResponse, _ responseTime: WallTime) -> String {
        let asked = RetryAfter.delay(
            in: response.headerFields,
            now: responseTime,
            maximum: .seconds(Int64(1) << 33)
        )
        guard let asked, asked > plan.policy.maximumRetryAfter else { return "" }
        return " and asks to wait for \(asked.roughly)"
    }

    /// Whether a bounded request has brought a part that no further part can be joined to.
    private func isPartOfUnjoinable(_ start: GenerationStart) -> Bool {
        guard case .awaitingHead(let request) = state, case .initialRange(let range) = request.kind,
            range != plan.range, start.validator == nil, let end = start.end
        else { return false }
        return end < min(plan.range.upperBound, start.completeLength ?? .max)
    }

    /// What permanent redirects led to before may have moved on: the requested URL knows.
    private mutating func distrustPermanentTarget(_ response: HTTPResponse) -> Bool {
        guard plan.permanentTarget != nil, !distrustsPermanentTarget, !isResolved,
            response.status.code >= 400, response.status.code != 416, response.status.code != 412
        else { return false }
        distrustsPermanentTarget = true
        return true
    }

    private mutating func begin(_ start: GenerationStart, _ response: HTTPResponse) -> Action {
        if plan.wantsWhole(after: start, response) { extendToEnd() }
        noteReplacement(by: start)
        var start = start
        start.contradictsStored = hasContradicted
        if hasContradicted, let doubted, doubted == start.validator { areRangesUntrusted = true }
        start.areRangesUntrusted = areRangesUntrusted
        (hasContradicted, doubted) = (false, nil)
        hasGeneration = true
        isRevalidating = false
        generation = Generation(
            validator: start.validator,
            completeLength: start.completeLength,
            target: chain.target
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

    /// Progress begins anew with a representation that is provably another one, a few times.
    private mutating func noteReplacement(by start: GenerationStart) {
        guard let validator = start.validator, validator != generation?.validator,
            replacements <= plan.policy.maximumRestarts
        else { return }
        if hasGeneration { replacements += 1 }
        furthest = start.offset
    }

    private mutating func go(
        on offset: Int64,
        limit: Int64?,
        isWhole: Bool = false
    ) -> Action {
        position = offset
        state = .receiving(Reception(limit: limit, isWhole: isWhole))
        return .receive(.continuing(from: offset, completeLength: completeLength))
    }

    /// Row 20: a redirect may have led to a signed URL that is no longer valid; the requested URL
    /// gives a fresh one, once.
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

    /// The exchange failed, before or in its body; what arrived is a valid prefix (row 24).
    ///
    /// - Parameters:
    ///   - error: how it failed.
    ///   - isOffline: whether the machine has no network.
    /// - Returns: what to do.
    package mutating func didFail(_ error: TransportError, isOffline: Bool = false) -> Action {
        let hadHead = if case .receiving = state { true } else { false }
        switch error.kind {
        case .cancelled: return fail(.cancelled)
        case .shutDown: return fail(.shutDown)
        case .invalidRequest: return fail(.invalidRequest(error))
        case .tls: return fail(.transport(error))
        case .nameResolution, .connect, .closedEarly, .malformedResponse: break
        }
        // Who posts does not want it done twice; before a connection nothing was done.
        let isSafe = plan.method == .get || plan.method == .head
        guard isSafe || error.kind == .connect || error.kind == .nameResolution else {
            return fail(.transport(error))
        }
        // The client has the head already, and nothing can be joined to what it has of the body.
        if plan.relay != nil, hadHead, generation?.validator == nil {
            return fail(.transport(error))
        }
        if isOffline { return waitForNetwork(error.phrase) }
        // A kept-alive connection that the origin was just closing: nobody's fault.
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
