import HTTPCaching

/// The memory tier as the engine uses it: whole responses, and what the application decoded of
/// them.
final class ResponseMemory: Sendable {
    /// Where the views of the application's own types come from.
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

    /// Keeps a whole response; refused, with whatever was there, if it is too large.
    func insert(_ entry: MemoryEntry, forKey key: CacheKey) {
        // What was decoded from an older body goes with it.
        tier.removeAll(forKey: key)
        responses.insert(entry, forKey: key)
    }

    /// Removes the response and what was decoded of it.
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
    /// Takes in how much may be used, and tells if that is less than before.
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
    /// Nil where no event is due: the caller asked for it, or put something better there.
    fileprivate var evictionReason: MediaCache.Event.EvictionReason? {
        switch self {
        case .expired: .expired
        case .size: .size
        case .pressure: .pressure
        case .explicit, .replaced: nil
        }
    }
}
