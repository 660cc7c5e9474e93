/// What an application wants of the cache for one request.
public enum CachePolicy: String, Hashable, Sendable, CaseIterable {
    /// Follow the protocol: reuse what is fresh, validate what is not (RFC 9111 §4).
    case protocolDefault = "default"
    /// Ask the origin for the whole response, whatever is stored, and store the answer.
    case reload
    /// Use what is stored, of whatever age; ask the origin only for what is not.
    case cacheElseLoad = "cache-else-load"
    /// Use what is stored, of whatever age; never ask the origin.
    case cacheOnly = "cache-only"
}
