extension ReuseDecision {
    /// The value of ``CacheStatus/forwardReason`` if the decision leads to the origin; nil
    /// otherwise.
    public var forwardReason: CacheStatus.ForwardReason? {
        switch (action, reason) {
        case (.use, _), (.useAndRevalidate, _), (.refuse, _): nil
        case (_, .varyMiss): .varyMiss
        case (_, .request), (_, .policy): .request
        case (_, .noCache), (_, .invalidated), (_, .stale), (_, .fresh), (_, .maxStale),
            (_, .staleWhileRevalidate):
            .stale
        }
    }
}
