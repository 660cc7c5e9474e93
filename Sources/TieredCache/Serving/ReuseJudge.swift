import HTTPCaching

/// Decides whether a stored response may answer a request without the origin; the only caller of
/// the rules.
struct ReuseJudge: Sendable {
    let rules: CacheRules
    let time: any TimeSource

    @inline(__always)
    func decision(
        about stored: StoredResponse,
        for request: CacheRequest,
        at now: WallTime
    ) -> ReuseDecision {
        stored.reuse(
            for: request.facts,
            requestFields: request.fields,
            rules: rules,
            now: now
        )
    }

    /// The decision at the current time.
    func decision(about stored: StoredResponse, for request: CacheRequest) -> ReuseDecision {
        decision(about: stored, for: request, at: time.wallTime())
    }
}

extension CacheRequest {
    /// Whether a stored response may answer it immediately: nothing has to be sent or changed
    /// first.
    @inline(__always)
    var mayBeAnsweredImmediately: Bool { isCacheable && policy != .reload && !isPinned }
}

extension ReuseDecision {
    /// Whether the stored response answers, with or without validation in the background.
    var isUse: Bool { action == .use || action == .useAndRevalidate }
}

extension StoredResponse {
    /// Whether the response has a form that the request accepts.
    ///
    /// A response fetched for the application may have followed redirects, which a client of a
    /// relay would have to see.
    func canAnswer(_ request: CacheRequest) -> Bool {
        request.relay == nil ? !isForClientsOnly : origin.finalURL == nil
    }
}
