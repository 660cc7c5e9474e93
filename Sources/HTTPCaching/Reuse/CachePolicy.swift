/// How the cache treats one request, as chosen by the application.
public enum CachePolicy: String, Hashable, Sendable, CaseIterable {
    /// Follow the protocol: reuse fresh responses, validate stale ones (RFC 9111 §4).
    case protocolDefault = "default"
    /// Ask the origin for the whole response, regardless of stored ones, and store it.
    case reload
    /// Use stored responses of any age; ask the origin only for missing ones.
    case cacheElseLoad = "cache-else-load"
    /// Use stored responses of any age; never ask the origin.
    case cacheOnly = "cache-only"
}
