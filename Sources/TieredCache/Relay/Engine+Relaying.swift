import FoundationEssentials
import HTTPCaching
import HTTPTypes

// Requests of other clients, answered as RFC 9111 lets an intermediary.
extension Engine {
    /// Answers from what is held, else with what the origin answers.
    ///
    /// What ends at this hop is taken away first, so that whatever is decided, stored or matched from
    /// here on is what the origin sees.
    func relay(_ asked: RelayRequest) async throws(CacheError) -> RelayResponse {
        var request = asked
        request.fields = StoredFields.endToEnd(asked.fields)
        return try await answer(request)
    }

    private func answer(_ request: RelayRequest) async throws(CacheError) -> RelayResponse {
        guard request.method == .get || request.method == .head else {
            return try await forward(request, CacheStatus.ForwardReason.method)
        }
        // What content means to a GET only the origin knows (RFC 9110 §9.3.1): an answer to it is
        // not for others, and theirs is not for it.
        guard request.body == nil else { return try await forward(request, .bypass) }
        let lookup = lookup(request.lookedUp)
        let held = try await lookup.held()
        if let part = try await lookup.part(insteadOf: held) { return relayed(part, request) }
        guard let held else {
            recorder.didMiss(lookup.request.key, .absent)
            return try await forward(request, .uriMiss)
        }
        let decision = lookup.decision(about: held)
        switch decision.action {
        case .use, .useAndRevalidate:
            return try await reuse(held, decision, request)
        case .validate:
            return try await validate(held, decision, request)
        case .forward:
            recorder.didMiss(
                lookup.request.key,
                decision.reason == .varyMiss ? .variant : .bypassed
            )
            let isVariant = decision.reason == .varyMiss && !request.hasSelection
            let variants = isVariant ? try await lookup.variantsToOffer() : []
            return try await forward(request, decision.forwardReason ?? .request, variants)
        case .refuse:
            recorder.didMiss(lookup.request.key, .stale)
            return gatewayTimeout(request, decision.reason)
        }
    }

    // MARK: From what is held

    private func reuse(
        _ held: HeldResponse,
        _ decision: ReuseDecision,
        _ request: RelayRequest
    ) async throws(CacheError) -> RelayResponse {
        let answer = StoredAnswer.decide(
            method: request.method,
            request: request.fields,
            stored: held.head,
            completeLength: held.completeLength
        )
        if case .forOrigin = answer { return try await forward(request, .request) }
        let asked = request.asking(for: answer)
        let wanted = try WantedRange.resolve(asked, completeLength: held.completeLength)
        guard let wanted,
            request.method == .head || answer.hasNoContent || held.holds(wanted)
                || held.head.validator != nil && !request.isOnlyIfCached
        else {
            recorder.didMiss(asked.key, .partial)
            return try await forward(request, .partial)
        }
        if decision.action == .useAndRevalidate { revalidateInBackground(asked, held) }
        guard request.method == .get, !answer.hasNoContent else {
            recorder.didHit(asked.key, held.tier, decision, bytes: 0)
            return relayed(held, decision, answer, request)
        }
        let response = try await response(from: held, wanted, decision, asked)
        return relayed(response, answer, request)
    }

    /// A stored head whose body the client does not get: 304, 416, or the answer to HEAD.
    private func relayed(
        _ held: HeldResponse,
        _ decision: ReuseDecision,
        _ answer: StoredAnswer,
        _ request: RelayRequest
    ) -> RelayResponse {
        let now = time.wallTime()
        return relayed(
            status: HTTPResponse.Status(code: held.head.status),
            fields: held.head.fieldsForReuse(now: now),
            .hit(timeToLive: decision.timeToLive, detail: held.tier.rawValue),
            completeLength: held.completeLength,
            body: MemoryBody(Data()),
            answer,
            request
        )
    }

    /// Bytes of a part that nothing may be joined to, or all of it as it came.
    private func relayed(_ part: HeldPart, _ request: RelayRequest) -> RelayResponse {
        let answer = part.bytes.map(StoredAnswer.partial) ?? .whole
        return relayed(response(from: part, request.lookedUp), answer, request)
    }

    private func validate(
        _ held: HeldResponse,
        _ decision: ReuseDecision,
        _ request: RelayRequest
    ) async throws(CacheError) -> RelayResponse {
        guard request.method == .get, held.head.status == 200 || held.head.facts.hasValidator else {
            // The answer to HEAD tells about what is held (RFC 9111 §4.3.5).
            var remainder = Remainder(
                task: .fetch,
                reason: decision.forwardReason ?? .stale,
                held: held
            )
            remainder.staleOnError = decision.staleOnError
            return try await forward(request, remainder)
        }
        let answer = StoredAnswer.decide(
            method: request.method,
            request: request.fields,
            stored: held.head,
            completeLength: held.completeLength
        )
        guard !answer.isForOrigin else { return try await forward(request, .request) }
        let asked = request.asking(for: answer)
        let remainder = try lookup(asked).remainder(validating: held, decision)
        return try await fetch(request, asked, remainder)
    }

    // MARK: From the origin

    private func forward(
        _ request: RelayRequest,
        _ reason: CacheStatus.ForwardReason,
        _ variants: [HeldResponse] = []
    ) async throws(CacheError) -> RelayResponse {
        try await forward(
            request,
            Remainder(task: .fetch, reason: reason, variants: variants)
        )
    }

    private func forward(
        _ request: RelayRequest,
        _ remainder: Remainder
    ) async throws(CacheError) -> RelayResponse {
        guard !request.isOnlyIfCached else { return gatewayTimeout(request, nil) }
        return try await fetch(request, request.forwarded, remainder)
    }

    private func fetch(
        _ request: RelayRequest,
        _ asked: CacheRequest,
        _ remainder: Remainder
    ) async throws(CacheError) -> RelayResponse {
        let context = OperationContext(priority: request.priority)
        let response: CacheResponse
        do throws(CacheError) {
            response = try await fetch(asked, remainder, context)
        } catch {
            var error = error
            error.cacheStatus = .forwarded(remainder.reason)
            throw error
        }
        if request.method == .head, let held = remainder.held {
            await freshen(held, byHead: response.head)
        }
        let wasHeld = response.headSource != .origin
        guard wasHeld || asked.range != nil else { return relayed(response, .whole, request) }
        return relayed(
            response,
            storedAnswer(response, asked, request, wasHeld: wasHeld),
            request
        )
    }

    /// How the response that came of it answers the client.
    private func storedAnswer(
        _ response: CacheResponse,
        _ asked: CacheRequest,
        _ request: RelayRequest,
        wasHeld: Bool
    ) -> StoredAnswer {
        if wasHeld {
            let answer = StoredAnswer.decide(
                method: request.method,
                request: request.fields,
                stored: response.head,
                completeLength: response.completeLength
            )
            guard case .partial = answer else { return answer }
        }
        guard response.head.status == 200, asked.range != nil, response.completeLength != nil,
            let end = response.range.upperBound
        else { return .whole }
        return .partial(response.range.lowerBound..<end)
    }
}

extension RelayRequest {
    /// Whether the origin must not be asked (RFC 9111 §5.2.1.7).
    fileprivate var isOnlyIfCached: Bool { RequestCacheControl(in: fields).onlyIfCached }

    /// The request that is looked up: HEAD is answered by what GET has stored.
    fileprivate var lookedUp: CacheRequest {
        var request = CacheRequest(target, key: nil, method: .get)
        request.fields = fields
        request.priority = priority
        request.relay = CacheRequest.Relay(onInterim: onInterim)
        return request
    }

    /// The request for what `answer` needs of the stored representation.
    fileprivate func asking(for answer: StoredAnswer) -> CacheRequest {
        var request = lookedUp
        request.fields[.range] = nil
        if case .partial(let range) = answer { request.range = .bounded(range) }
        return request
    }

    /// The request as it goes to the origin.
    ///
    /// A plain range is asked for in whole blocks, which can be held and joined. Any other one, and
    /// any condition, is the client's and goes as it is.
    fileprivate var forwarded: CacheRequest {
        var request = CacheRequest(target, key: nil, method: method)
        request.fields = fields
        request.priority = priority
        request.relay = CacheRequest.Relay(upload: body, onInterim: onInterim)
        guard method == .get, let spec = plainRange else { return request }
        request.fields[.range] = nil
        request.range = spec
        return request
    }

    private var isConditional: Bool { fields.hasPrecondition }

    /// Whether the client itself says which answer or which part of it it wants.
    fileprivate var hasSelection: Bool {
        method != .get || isConditional || fields.contains(.range)
    }

    private var plainRange: ByteRangeSpec? {
        guard let text = fields[.range], let asked = RangeRequest(text), asked.specs.count == 1,
            let spec = asked.specs.first, !isConditional
        else { return nil }
        if case .suffix = spec { return nil }
        return spec
    }
}

extension StoredAnswer {
    /// Whether the client gets no byte of the representation.
    var hasNoContent: Bool { self == .notModified || self == .rangeNotSatisfiable }

    fileprivate var isForOrigin: Bool { self == .forOrigin }
}
