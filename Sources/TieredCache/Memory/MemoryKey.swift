/// How keys are hashed and compared: by their bytes where that is faster and means the same.
///
/// `String` and ``CacheKey`` are recognised by type. In specialised code the comparison of types
/// folds away, and what remains is one XXH3 or one load.
@usableFromInline
enum MemoryKey<Key: Hashable> {
    @inlinable
    @inline(__always)
    static func hash(of key: Key) -> UInt64 {
        if Key.self == String.self {
            return UTF8Bytes.of(unsafeBitCast(key, to: String.self)) { UTF8Bytes.hash($0) }
        }
        if Key.self == CacheKey.self {
            return unsafeBitCast(key, to: CacheKey.self).hash
        }
        if Key.self == MemoryTierKey.self {
            return unsafeBitCast(key, to: MemoryTierKey.self).hash
        }
        return UInt64(bitPattern: Int64(key.hashValue))
    }

    /// Where the bytes of the key are while the key lives, for a hint to the processor; 0 if it has
    /// none.
    @inlinable
    @inline(__always)
    static func address(of key: Key) -> UInt {
        let string =
            if Key.self == String.self {
                unsafeBitCast(key, to: String.self)
            } else if Key.self == CacheKey.self {
                unsafeBitCast(key, to: CacheKey.self).string
            } else if Key.self == MemoryTierKey.self {
                unsafeBitCast(key, to: MemoryTierKey.self).key.string
            } else {
                ""
            }
        return UTF8Bytes.of(string) { UInt(bitPattern: $0.baseAddress) }
    }

    @inlinable
    @inline(__always)
    static func areEqual(_ left: Key, _ right: Key) -> Bool {
        if Key.self == String.self {
            return UTF8Bytes.areEqual(
                unsafeBitCast(left, to: String.self),
                unsafeBitCast(right, to: String.self)
            )
        }
        return left == right
    }
}
