import HTTPCaching

/// The memory tier as the engine uses it: whole responses, and values that the application decoded
/// from them.
final class ResponseMemory: Sendable {
    /// The tier that makes views of the application's own types.
    let tier: MemoryTier
    /// The largest body that is kept in memory, in bytes.
    let promotionLimit: Int64

    private let responses: TypedMemoryView<MemoryEntry>
    private let monitor: MemoryPressureMonitor?

    init(
        _ configuration: MediaCache.Configuration,
        events: EventHub,
        pressure: (any MemoryPressureSource)? = nil
    ) throws(CacheError) {
        let limits = try MemoryLimits(maximumCost: Int(clamping: configuration.memoryLimit))
        let tier = MemoryTier(limits: limits, time: configuration.timeSource) { key, cause in
            guard let reason = cause.evictionReason else { return }
            events.post(MediaCache.Event(key: key, .evicted(.memory, reason, bytes: 0)))
        }
        self.tier = tier
        responses = tier.view(named: "response") { $0.cost }
        // The head counts as well, so a little less than what one value may cost.
        promotionLimit = Int64(limits.maximumEntryCost)
        monitor =
            (pressure ?? configuration.memoryPressureSource).map { source in
                MemoryPressureMonitor(source: source) { [weak cache = tier.cache] fraction in
                    cache?.limit(toFraction: fraction, telling: events)
                }
            }
    }

    @inline(__always)
    func entry(forKey key: CacheKey) -> MemoryEntry? {
        responses.value(forKey: key)
    }

    /// Stores a whole response.
    ///
    /// One that is too large is refused, and the response stored before is removed.
    func insert(_ entry: MemoryEntry, forKey key: CacheKey) {
        // Values decoded from an older body are removed with it.
        tier.removeAll(forKey: key)
        responses.insert(entry, forKey: key)
    }

    /// Stores a freshened response in place of the one that was freshened.
    ///
    /// Does nothing if that one was removed, invalidated or replaced meanwhile.
    func replace(_ stale: MemoryEntry, by entry: MemoryEntry, forKey key: CacheKey) {
        let isReplaced = responses.replaceValue(forKey: key, with: entry) {
            $0.number == stale.number
        }
        if isReplaced { tier.removeAll(forKey: key, besides: responses.view.number) }
    }

    /// Removes the response and the values decoded from it.
    @discardableResult
    func remove(_ key: CacheKey) -> Bool {
        let wasStored = responses.contains(key)
        tier.removeAll(forKey: key)
        return wasStored
    }

    func removeAll() {
        tier.cache.removeAll()
    }
}

extension MemoryCache {
    /// Sets the fraction of the limit that may be used, and posts an event for a decrease.
    fileprivate func limit(toFraction fraction: Double, telling events: EventHub) {
        let before = statistics.costLimit
        limit(toFraction: fraction)
        let limit = statistics.costLimit
        guard limit < before else { return }
        events.post(MediaCache.Event(key: nil, .memoryPressure(limit: Int64(limit))))
    }
}

extension MediaCache.Configuration {
    fileprivate var memoryPressureSource: (any MemoryPressureSource)? {
        guard respondsToMemoryPressure else { return nil }
        #if os(Linux)
        return LinuxMemoryPressureSource()
        #else
        return nil
        #endif
    }
}

extension RemovalCause {
    /// Nil where no event is due: the caller removed the entry or replaced it.
    fileprivate var evictionReason: MediaCache.Event.EvictionReason? {
        switch self {
        case .expired: .expired
        case .size: .size
        case .pressure: .pressure
        case .explicit, .replaced: nil
        }
    }
}
