import Synchronization

extension MemoryCache {
    /// Whether a lookup would find a value; changes neither the order nor the statistics.
    package func contains(_ key: Key) -> Bool {
        withEntry(key) { shard, found in
            found >= 0 && !hasExpired(shard.pointee.entries.ledger(found).pointee.expiry)
        }
    }

    /// Removes the entry under `key`.
    ///
    /// - Returns: its value, or `nil` if there was none or it had expired.
    @discardableResult
    package func remove(_ key: Key) -> Value? {
        var removed: Removal?
        withEntry(key) { shard, found in
            guard found >= 0 else { return }
            let isExpired = hasExpired(shard.pointee.entries.ledger(found).pointee.expiry)
            removed = shard.pointee.remove(
                found,
                cause: isExpired ? .expired : .explicit,
                namesKey: observer != nil
            )
        }
        guard let removed else { return nil }
        finish(removed)
        return removed.cause == .expired ? nil : removed.value
    }

    /// Removes all entries.
    package func removeAll() {
        remove(cause: .explicit) { _, _ in true }
    }

    /// Removes the entries whose keys satisfy `predicate`.
    ///
    /// `predicate` is called outside of all locks, and may call the cache. What is added meanwhile
    /// may stay.
    ///
    /// - Complexity: linear in the number of entries; the keys of one shard at a time are copied.
    package func removeAll(where predicate: (Key) -> Bool) {
        for number in 0...shardMask {
            for key in keys(in: shard(number)) where predicate(key) {
                removeExplicitly(key)
            }
        }
    }

    private func keys(in shard: UnsafeMutablePointer<Shard>) -> [Key] {
        lock(of: shard).pointee.lock()
        defer { lock(of: shard).pointee.unlock() }
        let entries = shard.pointee.entries
        return (0..<shard.pointee.extent)
            .filter { entries.ledger($0).pointee.isLive }
            .map { entries.key($0) }
    }

    /// Removes an entry on request, also one that has expired unnoticed.
    private func removeExplicitly(_ key: Key) {
        var removed: Removal?
        withEntry(key) { shard, found in
            guard found >= 0 else { return }
            removed = shard.pointee.remove(found, cause: .explicit, namesKey: observer != nil)
        }
        if let removed { finish(removed) }
    }

    /// Removes the entries whose time has passed, which otherwise stay until they are noticed.
    ///
    /// - Complexity: linear in the number of entries; a shard at a time is locked.
    package func removeExpired() {
        remove(cause: .expired) { hasExpired($0.ledger($1).pointee.expiry) }
    }

    /// Forgets the superseded value of a key whose new value is too large.
    @usableFromInline
    func refuse(_ key: Key) {
        refusals.wrappingAdd(1, ordering: .relaxed)
        var removed: Removal?
        withEntry(key) { shard, found in
            guard found >= 0 else { return }
            removed = shard.pointee.remove(found, cause: .replaced, namesKey: observer != nil)
        }
        if let removed { finish(removed) }
    }

    /// Ends a lookup that met an expired entry: removes it and gives back the shard's lock.
    @usableFromInline
    func finishExpiredLookup(_ found: Int, in shard: UnsafeMutablePointer<Shard>) {
        shard.pointee.misses &+= 1
        let removed = shard.pointee.remove(found, cause: .expired, namesKey: observer != nil)
        lock(of: shard).pointee.unlock()
        finish(removed)
    }

    @usableFromInline
    func hasExpired(_ expiry: Int64) -> Bool {
        expiry != .max && time.monotonicTime().nanoseconds >= expiry
    }

    /// Updates the sums for a removal and calls the observer; the caller holds no lock.
    @usableFromInline
    func finish(_ removal: borrowing Removal) {
        // Before the observer is called, since it may read the sums.
        charge(MemoryGrowth(cost: -removal.cost, count: -1))
        notify(removal)
    }

    @inlinable
    func notify(_ removal: borrowing Removal) {
        guard let observer, let key = removal.key else { return }
        observer(key, removal.value, removal.cause)
    }

    private func withEntry<Result>(
        _ key: Key,
        body: (UnsafeMutablePointer<Shard>, Int) -> Result
    ) -> Result {
        MemoryKey.withBytes(of: key) { bytes in
            let hash = MemoryKey.hash(of: key, bytes)
            let shard = shard(Int(truncatingIfNeeded: hash) & shardMask)
            lock(of: shard).pointee.lock()
            defer { lock(of: shard).pointee.unlock() }
            let tag = UInt32(truncatingIfNeeded: hash >> 32)
            return body(shard, shard.pointee.find(key, bytes: bytes, tag: tag))
        }
    }

    private typealias Removed = (key: Key?, value: Value, cost: Int)

    private func remove(
        cause: RemovalCause,
        where condition: (MemoryEntries<Key, Value>, Int) -> Bool
    ) {
        for number in 0...shardMask {
            for left in takeAll(from: shard(number), cause: cause, where: condition) {
                finish(Removal(key: left.key, value: left.value, cost: left.cost, cause: cause))
            }
        }
    }

    private func takeAll(
        from shard: UnsafeMutablePointer<Shard>,
        cause: RemovalCause,
        where condition: (MemoryEntries<Key, Value>, Int) -> Bool
    ) -> [Removed] {
        lock(of: shard).pointee.lock()
        defer { lock(of: shard).pointee.unlock() }
        var removed: [Removed] = []
        let entries = shard.pointee.entries
        for entry in 0..<shard.pointee.extent where entries.ledger(entry).pointee.isLive {
            guard condition(entries, entry) else { continue }
            let removal = shard.pointee.remove(entry, cause: cause, namesKey: observer != nil)
            removed.append((removal.key, removal.value, removal.cost))
        }
        return removed
    }
}
