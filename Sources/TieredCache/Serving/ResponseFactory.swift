import HTTPCaching

/// The only place that makes responses; counts each by its kind.
struct ResponseFactory: Sendable {
    let time: any TimeSource
    let recorder: Recorder

    /// Responds with stored bytes, without the origin, and counts a hit.
    ///
    /// - Parameters:
    ///   - request: the request to answer.
    ///   - content: the content of the response.
    ///   - tier: the tier that stores the content.
    ///   - source: the source that the response names; see ``ReuseDecision/source(of:for:)``.
    ///   - decision: the decision that allows the reuse.
    /// - Returns: the response.
    func hit(
        for request: CacheRequest,
        content: ResponseContent,
        from tier: MediaCache.Event.Tier,
        as source: ResponseSource,
        decision: ReuseDecision
    ) -> CacheResponse {
        recorder.didHit(request.key, in: tier, decision: decision, bytes: content.counted)
        return response(
            to: request,
            content: content,
            as: source,
            status: .hit(timeToLive: decision.timeToLive, detail: tier.rawValue)
        )
    }

    /// Makes any other response; counts nothing.
    func response(
        to request: CacheRequest,
        content: ResponseContent,
        as source: ResponseSource,
        status: CacheStatus,
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
    /// The source that a response from a tier names.
    ///
    /// An application that has set a policy does not learn from it that the response is stale.
    func source(of tier: MediaCache.Event.Tier, for request: CacheRequest) -> ResponseSource {
        if isStale, request.policy == .protocolDefault { return .stale }
        return tier == .memory ? .memory : .disk
    }
}
