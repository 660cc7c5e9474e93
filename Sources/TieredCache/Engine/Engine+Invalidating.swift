import HTTPCaching
import HTTPTypes

// What changes at the origin through this cache makes unusable.
extension Engine {
    /// What a successful unsafe request makes unusable is validated before its next use
    /// (RFC 9111 §4.4).
    func invalidate(after request: CacheRequest, _ response: CacheResponse) async {
        let targets = Invalidation.targets(
            method: request.method,
            target: request.target,
            status: response.status.code,
            fields: response.fields
        )
        for target in targets { await storage.invalidate(CacheKey(target)) }
    }
}
