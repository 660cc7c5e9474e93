import HTTPCaching
import HTTPTypes

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

    /// Whether a response may answer a request at all: by whom it was fetched, and for whom.
    ///
    /// An application gets nothing in a form that only clients of a relay can use. Where it asks by
    /// a relay, it gets no error that it stored by calls of its own: those are stored without their
    /// bodies. Another client of a relay gets only what a relay fetched: the directory may be an
    /// application's as well, whose responses are for its own credentials and cookies, and may have
    /// followed redirects. If the cache is shared, that client gets only what a shared cache may
    /// store (RFC 9111 §5.2.2.7), whatever the cache was before.
    func mayAnswer(_ request: CacheRequest, with stored: StoredResponse) -> Bool {
        guard let relay = request.relay else { return !stored.isForClientsOnly }
        guard stored.origin.finalURL == nil else { return false }
        guard !relay.isForApplication else {
            return stored.flags.contains(.relayed) || stored.status < 400
        }
        guard stored.flags.contains(.relayed) else { return false }
        guard rules.isShared else { return true }
        return !ResponseCacheControl(in: stored.fields).has(.isPrivate)
            && !stored.fields.contains(.setCookie)
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
