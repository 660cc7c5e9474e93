import HTTPCaching

/// The one maker of responses; what a response counts as is counted with it.
struct ResponseFactory: Sendable {
    let time: any TimeSource
    let recorder: Recorder

    /// Answers with what is stored, without the origin.
    ///
    /// - Parameters:
    ///   - request: what is answered.
    ///   - content: the answer.
    ///   - tier: what holds it.
    ///   - source: what the answer says of that; see ``ReuseDecision/source(of:for:)``.
    ///   - decision: why it may be used.
    /// - Returns: the response.
    func hit(
        _ request: CacheRequest,
        _ content: ResponseContent,
        from tier: MediaCache.Event.Tier,
        as source: ResponseSource,
        _ decision: ReuseDecision
    ) -> CacheResponse {
        recorder.didHit(request.key, tier, decision, bytes: content.counted)
        return response(
            to: request,
            content,
            as: source,
            .hit(timeToLive: decision.timeToLive, detail: tier.rawValue)
        )
    }

    /// Any answer, of which nothing is left to count.
    func response(
        to request: CacheRequest,
        _ content: ResponseContent,
        as source: ResponseSource,
        _ status: CacheStatus,
        notStored: NotStored? = nil,
        isStored: Bool = true
    ) -> CacheResponse {
        CacheResponse(
            content,
            to: request,
            source: source,
            cacheStatus: status,
            now: time.wallTime(),
            notStored: notStored,
            isStored: isStored
        )
    }
}

extension ReuseDecision {
    /// What an answer from a tier says of its source; an application that has set a policy is not
    /// told that it is stale.
    func source(of tier: MediaCache.Event.Tier, for request: CacheRequest) -> ResponseSource {
        if isStale, request.policy == .protocolDefault { return .stale }
        return tier == .memory ? .memory : .disk
    }
}
