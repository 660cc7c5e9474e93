/// The values of one type in the engine's memory: an image, a playlist, or the bodies themselves.
///
/// All views share the tier's limit and its order; each has a cost function of its own.
///
/// ```swift
/// let playlists = cache.memoryView(of: Playlist.self, named: "playlist") { $0.text.utf8.count }
/// let playlist = try playlists.value(forKey: key) { try Playlist(parsing: bytes) }
/// ```
public struct TypedMemoryView<Decoded: Sendable>: Sendable {
    @usableFromInline let view: MemoryView
    let cost: @Sendable (Decoded) -> Int

    init(
        cache: MemoryCache<MemoryTierKey, MemoryTierValue>,
        number: UInt32,
        cost: @escaping @Sendable (Decoded) -> Int
    ) {
        view = MemoryView(cache: cache, number: number)
        self.cost = cost
    }

    /// The value under `key`, which becomes the most recently used.
    @inlinable
    public func value(forKey key: CacheKey) -> Decoded? {
        guard let value = view.value(forKey: key) else { return nil }
        // Safe: the tier gives a number to one type only, and only views of that number store.
        return unsafeDowncast(value, to: TypedMemoryValue<Decoded>.self).decoded
    }

    /// The value under `key`, or the one that `make` makes, which is then stored.
    ///
    /// `make` is called outside all locks; two threads that miss at once both call it.
    public func value<Failure: Error>(
        forKey key: CacheKey,
        expiresAfter lifetime: Duration? = nil,
        orMake make: () throws(Failure) -> Decoded
    ) throws(Failure) -> Decoded {
        if let cached = value(forKey: key) { return cached }
        let made = try make()
        insert(made, forKey: key, expiresAfter: lifetime)
        return made
    }

    /// Stores a value, in place of an older one under its key in this view.
    ///
    /// - Parameters:
    ///   - decoded: the value to store.
    ///   - key: the key that identifies it.
    ///   - lifetime: how long it may be returned; `nil` for as long as there is room.
    /// - Returns: `false` if it was refused because its cost is too high.
    @discardableResult
    public func insert(
        _ decoded: Decoded,
        forKey key: CacheKey,
        expiresAfter lifetime: Duration? = nil
    ) -> Bool {
        view.insert(
            TypedMemoryValue(decoded),
            forKey: key,
            cost: cost(decoded),
            expiresAfter: lifetime
        )
    }

    /// Stores a value in place of the one under its key in this view, if that is the expected one.
    ///
    /// - Returns: `false` if it was not replaced, or if the cost is too high.
    func replaceValue(
        forKey key: CacheKey,
        with decoded: Decoded,
        where isExpected: (Decoded) -> Bool
    ) -> Bool {
        view.cache.replaceValue(
            forKey: MemoryTierKey(key, view: view.number),
            with: TypedMemoryValue(decoded),
            cost: cost(decoded)
        ) { value in
            // Safe, as in ``value(forKey:)``.
            isExpected(unsafeDowncast(value, to: TypedMemoryValue<Decoded>.self).decoded)
        }
    }

    /// Whether a value is stored; changes neither the order nor the statistics.
    public func contains(_ key: CacheKey) -> Bool {
        view.contains(key)
    }

    /// Removes the value under `key` from this view alone.
    @discardableResult
    public func remove(_ key: CacheKey) -> Decoded? {
        guard let value = view.remove(key) else { return nil }
        return unsafeDowncast(value, to: TypedMemoryValue<Decoded>.self).decoded
    }
}
