import HTTPCaching

/// The one maker of responses; what a response counts as is counted with it.
struct ResponseFactory: Sendable {
    /// What answers: a head, and bytes of its representation.
    struct Content {
        let head: StoredResponse
        let completeLength: Int64?
        let wanted: WantedRange
        let body: any BodySource
    }

    let time: any TimeSource
    let recorder: Recorder

    /// Answers with what is held, without the origin.
    ///
    /// - Parameters:
    ///   - request: what is answered.
    ///   - content: the answer.
    ///   - tier: what holds it.
    ///   - source: what the answer says of that; see ``ReuseDecision/source(of:for:)``.
    ///   - decision: why it may be used.
    ///   - counted: how many of its bytes count as delivered by now.
    ///   - trouble: why it cannot be pinned.
    /// - Returns: the response.
    func hit(
        _ request: CacheRequest,
        _ content: Content,
        from tier: CacheEvent.Tier,
        as source: ResponseSource,
        _ decision: ReuseDecision,
        counted: Int,
        trouble: CacheError? = nil
    ) -> CacheResponse {
        recorder.didHit(request.key, tier, decision, bytes: counted)
        return response(
            to: request,
            content,
            as: source,
            .hit(timeToLive: decision.timeToLive, detail: tier.rawValue),
            trouble: trouble
        )
    }

    /// Answers with what is held once the origin was asked: it has confirmed it, or has failed.
    func held(
        _ request: CacheRequest,
        _ content: Content,
        from tier: CacheEvent.Tier,
        as source: ResponseSource,
        _ status: CacheStatus,
        counted: Int,
        trouble: CacheError?
    ) -> CacheResponse {
        recorder.didRead(Int64(counted), from: tier)
        return response(to: request, content, as: source, status, trouble: trouble)
    }

    /// Any answer, of which nothing is left to count.
    func response(
        to request: CacheRequest,
        _ content: Content,
        as source: ResponseSource,
        _ status: CacheStatus,
        notStored: NotStored? = nil,
        isStored: Bool = true,
        trouble: CacheError? = nil
    ) -> CacheResponse {
        CacheResponse(
            content.head,
            request: request,
            source: source,
            cacheStatus: status,
            completeLength: content.completeLength,
            wanted: content.wanted,
            body: content.body,
            now: time.wallTime(),
            notStored: notStored,
            isStored: isStored,
            trouble: trouble
        )
    }
}

extension ReuseDecision {
    /// What an answer from a tier says of its source; an application that has set a policy is not told
    /// that it is stale.
    func source(of tier: CacheEvent.Tier, for request: CacheRequest) -> ResponseSource {
        if isStale, request.policy == .protocolDefault { return .stale }
        return tier == .memory ? .memory : .disk
    }
}
