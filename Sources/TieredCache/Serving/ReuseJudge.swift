import HTTPCaching

/// Says whether what is stored may answer a request without the origin; the one place that asks the
/// rules.
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

    /// The same now.
    func decision(about stored: StoredResponse, for request: CacheRequest) -> ReuseDecision {
        decision(about: stored, for: request, at: time.wallTime())
    }
}

extension CacheRequest {
    /// Whether a look at what is stored may answer it: nothing has to be asked or changed first.
    @inline(__always)
    var mayBeAnsweredAtOnce: Bool { isCacheable && policy != .reload && !isPinned }
}

extension ReuseDecision {
    /// Whether the stored response answers, whatever is done besides.
    var isUse: Bool { action == .use || action == .useAndRevalidate }
}

extension StoredResponse {
    /// Whether the response has the form that a request needs.
    ///
    /// What was fetched for the application may lie behind a redirect, which another client would
    /// have to see.
    func mayAnswer(_ request: CacheRequest) -> Bool {
        request.relay == nil ? !isForClientsOnly : origin.finalURL == nil
    }
}
