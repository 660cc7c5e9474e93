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
        for target in targets { await invalidate(CacheKey(target)) }
    }

    private func invalidate(_ key: CacheKey) async {
        let keys = [key] + furtherKeys(of: key)
        for key in keys { memory.remove(key) }
        guard disk.openStore != nil else { return }
        await writers.run { [self] in
            for key in keys { markInvalid(key) }
        }
        // Somebody may have promoted it before the mark was there.
        for key in keys { memory.remove(key) }
    }

    private func markInvalid(_ key: CacheKey) {
        do throws(CacheError) {
            guard let entry = try disk.openStore?.entry(for: key, isUse: false),
                var head = StoredResponse(encoded: entry.metadata)
            else { return }
            head.flags.insert(.invalidated)
            try entry.updateMetadata(head.encoded())
        } catch {
            recorder.didFailToLookUp(key, error)
        }
    }
}
