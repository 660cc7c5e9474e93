import Synchronization

extension MemoryCache {
    /// Stores a value in place of the one under its key, as the most recently used, if there is one
    /// and it is the expected one.
    ///
    /// - Parameters:
    ///   - key: the key that identifies the values.
    ///   - value: the value to store, for as long as there is room.
    ///   - cost: the cost charged against the limit; a negative cost counts as zero.
    ///   - isExpected: whether the stored value may be replaced; called under the lock.
    /// - Returns: `false` if it was not replaced, or if the cost is above the limit for one value.
    func replaceValue(
        forKey key: Key,
        with value: Value,
        cost: Int,
        where isExpected: (Value) -> Bool
    ) -> Bool {
        let cost = max(0, cost)
        guard cost <= maximumEntryCost, cost <= costLimit.load(ordering: .relaxed) else {
            return false
        }
        return MemoryKey.withBytes(of: key) { bytes in
            let hash = MemoryKey.hash(of: key, bytes)
            let shard = shard(Int(truncatingIfNeeded: hash) & shardMask)
            lock(of: shard).pointee.lock()
            let tag = UInt32(truncatingIfNeeded: hash >> 32)
            let found = shard.pointee.find(key, bytes: bytes, tag: tag)
            guard found >= 0, isExpected(shard.pointee.entries.value(found).pointee) else {
                lock(of: shard).pointee.unlock()
                return false
            }
            finishReplacement(
                of: found,
                in: shard,
                by: value,
                cost: cost,
                expiry: .max,
                epoch: advanceEpoch(in: shard)
            )
            return true
        }
    }
}
