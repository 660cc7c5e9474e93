public import Synchronization

/// What lies before a shard in memory: its lock, and what other threads may read without it.
@usableFromInline
struct MemoryShardHead: ~Copyable, Sendable {
    @usableFromInline let lock = MemoryLock()
    /// A stamp that none of the shard's entries is older than; `.max` for an empty shard.
    @usableFromInline let oldest = Atomic<UInt64>(.max)

    /// The place of the index and the logarithm of its capacity, see ``MemoryIndex/hint``.
    @usableFromInline let index = Atomic<UInt>(0)

    @usableFromInline
    init() {}

    /// Starts loading the slot of a tag.
    ///
    /// The lock is an atomic operation that later loads wait for; so the slot is on its way while
    /// the lock is taken. An index that has grown in the meantime
    /// makes the hint useless, not wrong.
    @inlinable
    @inline(__always)
    borrowing func prefetchSlot(of tag: UInt32) {
        MemoryIndex.prefetch(tag, in: index.load(ordering: .relaxed))
    }
}
