/// The values of one view, whatever their type: the part that is compiled once for all types.
@usableFromInline
struct MemoryView: Sendable {
    let cache: MemoryCache<MemoryTierKey, MemoryTierValue>
    let number: UInt32

    /// The value under `key`, which becomes the most recently used.
    @usableFromInline
    func value(forKey key: CacheKey) -> MemoryTierValue? {
        cache.value(forKey: MemoryTierKey(key, view: number))
    }

    /// Stores a value, in place of an older one under its key; false if its cost is too high.
    func insert(
        _ value: MemoryTierValue,
        forKey key: CacheKey,
        cost: Int,
        expiresAfter lifetime: Duration?
    ) -> Bool {
        cache.insert(
            value,
            forKey: MemoryTierKey(key, view: number),
            cost: cost,
            expiresAfter: lifetime
        )
    }

    /// Whether a value is stored; changes neither the order nor the statistics.
    func contains(_ key: CacheKey) -> Bool {
        cache.contains(MemoryTierKey(key, view: number))
    }

    /// Removes the value under `key`.
    func remove(_ key: CacheKey) -> MemoryTierValue? {
        cache.remove(MemoryTierKey(key, view: number))
    }
}
