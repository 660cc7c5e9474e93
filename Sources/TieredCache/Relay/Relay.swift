import FoundationEssentials
import HTTPCaching
import HTTPTypes

/// A request of another client, answered as RFC 9111 allows an intermediary to.
struct Relay: Sendable {
    typealias Remainder = LookupOperation.Remainder

    let responder: Responder
    let request: RelayRequest

    /// Removes hop-by-hop fields first, so that all later decisions use the fields that the origin
    /// receives.
    init(_ asked: RelayRequest, responder: Responder) {
        var request = asked
        request.fields = StoredFields.endToEnd(asked.fields)
        self.request = request
        self.responder = responder
    }

    var recorder: Recorder { responder.recorder }
    var time: any TimeSource { responder.time }

    /// Responds with a stored response, otherwise with that of the origin.
    func response() async throws(CacheError) -> RelayResponse {
        guard request.method == .get || request.method == .head else {
            return try await forward(CacheStatus.ForwardReason.method)
        }
        // Only the origin knows the meaning of content in a GET (RFC 9110 §9.3.1): the response
        // answers no other request, and a stored response does not answer this one.
        guard request.body == nil else { return try await forward(.bypass) }
        let lookup = responder.lookup(request.lookedUp)
        guard let stored = try await lookup.storedEntry() else {
            recorder.didMiss(lookup.request.key, because: .absent)
            return try await forward(.uriMiss)
        }
        let decision = lookup.decision(about: stored)
        switch decision.action {
        case .use, .useAndRevalidate:
            return try await reuse(stored, decision: decision)
        case .validate:
            return try await validate(stored, decision: decision)
        case .forward:
            recorder.didMiss(
                lookup.request.key,
                because: decision.reason == .varyMiss ? .variant : .bypassed
            )
            let isVariant = decision.reason == .varyMiss && !request.hasSelection
            let variants = isVariant ? try await lookup.variantsToOffer() : []
            return try await forward(decision.forwardReason ?? .request, variants: variants)
        case .refuse:
            recorder.didMiss(lookup.request.key, because: .stale)
            return gatewayTimeout(decision.reason)
        }
    }

    // MARK: Stored responses

    private func reuse(
        _ stored: StoredEntry,
        decision: ReuseDecision
    ) async throws(CacheError) -> RelayResponse {
        let answer = answer(from: stored.head, completeLength: stored.completeLength)
        if case .forOrigin = answer { return try await forward(.request) }
        let asked = request.asking(for: answer)
        let wanted = try WantedRange.resolve(for: asked, completeLength: stored.completeLength)
        guard let wanted,
            request.method == .head || answer.hasNoContent || stored.contains(wanted)
                || stored.head.validator != nil && !request.isOnlyIfCached
        else {
            recorder.didMiss(asked.key, because: .partial)
            return try await forward(.partial)
        }
        if decision.action == .useAndRevalidate {
            responder.revalidateInBackground(stored, for: asked)
        }
        guard request.method == .get, !answer.hasNoContent else {
            recorder.didHit(asked.key, in: stored.tier, decision: decision, bytes: 0)
            return relayed(stored, decision: decision, answer: answer)
        }
        return relayed(
            try await responder.response(
                from: stored,
                wanted: wanted,
                decision: decision,
                for: asked
            ),
            answer: answer
        )
    }

    /// A stored head without its body: 304, 416, or the response to HEAD.
    private func relayed(
        _ stored: StoredEntry,
        decision: ReuseDecision,
        answer: ConditionalResponse
    ) -> RelayResponse {
        relayed(
            status: HTTPResponse.Status(code: stored.head.status),
            fields: stored.head.fieldsForReuse(now: time.wallTime()),
            cacheStatus: .hit(timeToLive: decision.timeToLive, detail: stored.tier.rawValue),
            completeLength: stored.completeLength,
            body: MemoryBody(Data()),
            answer: answer
        )
    }

    private func validate(
        _ stored: StoredEntry,
        decision: ReuseDecision
    ) async throws(CacheError) -> RelayResponse {
        guard request.method == .get, stored.head.status == 200 || stored.head.facts.hasValidator
        else {
            // The response to HEAD updates the stored response (RFC 9111 §4.3.5).
            var remainder = Remainder(
                task: .fetch,
                reason: decision.forwardReason ?? .stale,
                stored: stored
            )
            remainder.staleOnError = decision.staleOnError
            return try await forward(remainder)
        }
        let answer = answer(from: stored.head, completeLength: stored.completeLength)
        guard answer != .forOrigin else { return try await forward(.request) }
        let asked = request.asking(for: answer)
        let remainder = responder.lookup(asked).remainder(
            validating: stored,
            decision: decision
        )
        return try await fetch(asked, remainder: remainder)
    }

    // MARK: From the origin

    private func forward(
        _ reason: CacheStatus.ForwardReason,
        variants: [StoredEntry] = []
    ) async throws(CacheError) -> RelayResponse {
        try await forward(Remainder(task: .fetch, reason: reason, variants: variants))
    }

    private func forward(_ remainder: Remainder) async throws(CacheError) -> RelayResponse {
        guard !request.isOnlyIfCached else { return gatewayTimeout(nil) }
        return try await fetch(request.forwarded, remainder: remainder)
    }

    private func fetch(
        _ asked: CacheRequest,
        remainder: Remainder
    ) async throws(CacheError) -> RelayResponse {
        let response: CacheResponse
        do throws(CacheError) {
            response = try await Fetch(responder: responder, request: asked, remainder: remainder)
                .response(in: OperationContext(priority: request.priority))
        } catch {
            var error = error
            error.cacheStatus = .forwarded(remainder.reason)
            throw error
        }
        if request.method == .head, let stored = remainder.stored {
            await freshen(stored, byHead: response.head)
        }
        let wasStored = response.headSource != .origin
        guard wasStored || asked.range != nil else { return relayed(response, answer: .whole) }
        return relayed(
            response,
            answer: conditionalResponse(from: response, to: asked, wasStored: wasStored)
        )
    }

    /// The part of a stored representation that answers the client.
    private func answer(from stored: StoredResponse, completeLength: Int64?) -> ConditionalResponse
    {
        ConditionalResponse.decide(
            method: request.method,
            request: request.fields,
            stored: stored,
            completeLength: completeLength
        )
    }

    /// The part of a response that answers the client.
    private func conditionalResponse(
        from response: CacheResponse,
        to asked: CacheRequest,
        wasStored: Bool
    ) -> ConditionalResponse {
        if wasStored {
            let answer = answer(from: response.head, completeLength: response.completeLength)
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
    fileprivate var isOnlyIfCached: Bool {
        policy == .cacheOnly || RequestCacheControl(in: fields).onlyIfCached
    }

    /// The request to look up: a stored response to GET also answers HEAD.
    fileprivate var lookedUp: CacheRequest {
        var request = CacheRequest(target, key: nil, method: .get)
        request.fields = fields
        request.policy = policy
        request.priority = priority
        request.relay = CacheRequest.Relay(
            onInterim: onInterim,
            isForApplication: isForApplication
        )
        return request
    }

    /// The request for the bytes that `answer` needs of the stored representation.
    fileprivate func asking(for answer: ConditionalResponse) -> CacheRequest {
        var request = lookedUp
        request.fields[.range] = nil
        if case .partial(let range) = answer { request.range = .bounded(range) }
        return request
    }

    /// The request to send to the origin.
    ///
    /// A single plain range is requested in whole blocks, which can be stored and combined. Any
    /// other range, and any precondition, is forwarded unchanged.
    fileprivate var forwarded: CacheRequest {
        var request = CacheRequest(target, key: nil, method: method)
        request.fields = fields
        request.policy = policy
        request.priority = priority
        request.relay = CacheRequest.Relay(
            upload: body,
            onInterim: onInterim,
            isForApplication: isForApplication
        )
        guard method == .get, let spec = plainRange else { return request }
        request.fields[.range] = nil
        request.range = spec
        return request
    }

    private var isConditional: Bool { fields.hasPrecondition }

    /// Whether the client itself selects the response or a part of it.
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

extension ConditionalResponse {
    /// Whether the response has no byte of the representation.
    var hasNoContent: Bool { self == .notModified || self == .rangeNotSatisfiable }
}
