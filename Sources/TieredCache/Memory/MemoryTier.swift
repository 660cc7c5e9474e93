/// The engine's memory: bodies and decoded values of many types under one limit, in one order.
///
/// Views store values and look them up, see ``TypedMemoryView``. An image decoded from an entry and
/// the entry's bytes are two values under one key; the less recently used one leaves first,
/// whatever its type.
package final class MemoryTier: Sendable {
    private struct ViewID: Hashable {
        let name: String
        let type: ObjectIdentifier
    }

    /// The cache below all views.
    package let cache: MemoryCache<MemoryTierKey, MemoryTierValue>
    private let views = Guarded<[ViewID: UInt32]>([:])

    /// Creates an empty tier.
    ///
    /// - Parameters:
    ///   - limits: how much all views together may hold.
    ///   - time: what expiry is measured by.
    ///   - onRemoval: called for every entry that leaves, with its key; outside all locks.
    package init(
        limits: MemoryLimits,
        time: any TimeSource = SystemTimeSource(),
        onRemoval: (@Sendable (CacheKey, RemovalCause) -> Void)? = nil
    ) {
        let observer = onRemoval.map { onRemoval in
            { @Sendable (key: MemoryTierKey, _: MemoryTierValue, cause: RemovalCause) in
                onRemoval(key.key, cause)
            }
        }
        cache = MemoryCache(limits: limits, time: time, onRemoval: observer)
    }

    /// A view of the values that have this type and were stored under this name.
    ///
    /// Two views of one name and type see the same values. Keep the view; making one takes a lock.
    ///
    /// - Parameters:
    ///   - type: the type of the values.
    ///   - name: tells views of one type apart, such as "image" and "thumbnail".
    ///   - cost: the cost of a value against the limit, usually the bytes that it keeps alive; a
    ///     negative cost counts as zero.
    /// - Returns: the view.
    package func view<Decoded: Sendable>(
        of type: Decoded.Type = Decoded.self,
        named name: String,
        cost: @escaping @Sendable (Decoded) -> Int
    ) -> TypedMemoryView<Decoded> {
        let id = ViewID(name: name, type: ObjectIdentifier(type))
        let number = views.withLock { views in
            if let known = views[id] { return known }
            let number = UInt32(views.count)
            views[id] = number
            return number
        }
        return TypedMemoryView(cache: cache, number: number, cost: cost)
    }

    /// Removes what all views hold under `key`, as when the entry itself is removed or replaced.
    package func removeAll(forKey key: CacheKey) {
        removeAll(forKey: key, besides: nil)
    }

    /// Removes what all views hold under `key`, one view apart.
    func removeAll(forKey key: CacheKey, besides kept: UInt32?) {
        // Views are never given up, so that the numbers below the count are all there are.
        let count = views.withLock { UInt32($0.count) }
        for number in 0..<count where number != kept {
            cache.remove(MemoryTierKey(key, view: number))
        }
    }
}

/// A value of any type in the engine's memory; ``TypedMemoryView`` knows which.
@usableFromInline
package class MemoryTierValue: @unchecked Sendable {
    // Unchecked only because it has a subclass, which holds one immutable `Sendable` value.
    @usableFromInline
    init() {}
}

/// A value of one type.
@usableFromInline
final class TypedMemoryValue<Decoded: Sendable>: MemoryTierValue, @unchecked Sendable {
    // Unchecked as its superclass is.
    @usableFromInline let decoded: Decoded

    @usableFromInline
    init(_ decoded: Decoded) {
        self.decoded = decoded
        super.init()
    }
}
