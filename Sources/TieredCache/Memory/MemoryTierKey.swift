/// A key of the engine's memory tier: an entry's key and the view that decoded it.
@usableFromInline
package struct MemoryTierKey: Hashable, Sendable {
    /// The entry's key.
    @usableFromInline package let key: CacheKey
    /// The number of the view; ``MemoryTier`` assigns it.
    @usableFromInline let view: UInt32

    @inlinable
    init(_ key: CacheKey, view: UInt32) {
        self.key = key
        self.view = view
    }

    /// The key's hash, moved by the view: views of one key must not share a slot.
    @inlinable
    @inline(__always)
    var hash: UInt64 {
        // Fibonacci hashing spreads small numbers over all bits.
        key.hash ^ UInt64(view) &* 0x9e37_79b9_7f4a_7c15
    }

    /// Compares the view and the key's bytes.
    @inlinable
    package static func == (left: MemoryTierKey, right: MemoryTierKey) -> Bool {
        left.view == right.view && left.key == right.key
    }

    /// Feeds the hash computed when the key was made.
    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(hash)
    }
}
