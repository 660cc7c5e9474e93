/// How keys are hashed and compared: by their bytes where that is faster and means the same.
///
/// `String` and the keys that wrap one are recognised by type. In specialised code the comparison
/// of types folds away, and what remains is one inline hash or one load.
@usableFromInline
enum MemoryKey<Key: Hashable> {
    /// Whether the bytes of a string, and the qualifier, are all there is to a key.
    @inlinable static var isText: Bool {
        Key.self == String.self || Key.self == CacheKey.self || Key.self == MemoryTierKey.self
    }

    /// The string of a key that is text.
    @inlinable
    @inline(__always)
    static func text(of key: Key) -> String {
        if Key.self == String.self { return unsafeBitCast(key, to: String.self) }
        if Key.self == CacheKey.self { return unsafeBitCast(key, to: CacheKey.self).string }
        if Key.self == MemoryTierKey.self {
            return unsafeBitCast(key, to: MemoryTierKey.self).key.string
        }
        return ""
    }

    /// What tells keys of the same text apart.
    @inlinable
    @inline(__always)
    static func qualifier(of key: Key) -> UInt32 {
        guard Key.self == MemoryTierKey.self else { return 0 }
        return unsafeBitCast(key, to: MemoryTierKey.self).view
    }

    /// The hash of a key, whose text has these bytes if it is text.
    @inlinable
    @inline(__always)
    static func hash(of key: Key, _ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        if Key.self == String.self { return UTF8Bytes.hash(bytes) }
        if Key.self == CacheKey.self { return unsafeBitCast(key, to: CacheKey.self).hash }
        if Key.self == MemoryTierKey.self {
            return unsafeBitCast(key, to: MemoryTierKey.self).hash
        }
        return UInt64(bitPattern: Int64(key.hashValue))
    }

    @inlinable
    static func hash(of key: Key) -> UInt64 {
        withBytes(of: key) { hash(of: key, $0) }
    }

    /// Passes the bytes of a key's text to `body`, or none.
    ///
    /// `body` is inlined into each of the ways in which a string may hold its bytes: it should be
    /// one call.
    @inlinable
    @inline(__always)
    static func withBytes<Result>(
        of key: Key,
        _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        guard isText else { return body(UnsafeBufferPointer(start: nil, count: 0)) }
        return UTF8Bytes.of(text(of: key), body: body)
    }

    /// Where the bytes of a key are as long as the key lives, or 0.
    ///
    /// Of a native string of 16 bytes or more they lie in its object, and nothing moves that. (A
    /// shorter string has no object; that of another language may have bytes only for a moment.)
    /// Comparing them through the `String` would count a reference to it twice per lookup.
    @inlinable
    @inline(__always)
    static func address(of key: Key) -> UInt {
        guard isText else { return 0 }
        let bytes = text(of: key).utf8
        return bytes.withContiguousStorageIfAvailable {
            $0.count < 16 ? 0 : UInt(bitPattern: $0.baseAddress)
        } ?? 0
    }

    /// The key of a text; the opposite of ``withBytes(of:_:)`` and ``qualifier(of:)``.
    @usableFromInline
    static func make(_ bytes: UnsafeBufferPointer<UInt8>, qualifier: UInt32) -> Key {
        let string = String(decoding: bytes, as: UTF8.self)
        if Key.self == String.self { return unsafeBitCast(string, to: Key.self) }
        let key = CacheKey(stored: string)
        if Key.self == CacheKey.self { return unsafeBitCast(key, to: Key.self) }
        precondition(Key.self == MemoryTierKey.self, "not a text: \(Key.self)")
        return unsafeBitCast(MemoryTierKey(key, view: qualifier), to: Key.self)
    }

    /// Whether two keys are equal, however they hold their bytes.
    @inlinable
    @inline(never)
    static func areEqual(_ left: Key, _ right: Key) -> Bool {
        guard isText else { return left == right }
        return qualifier(of: left) == qualifier(of: right)
            && UTF8Bytes.areEqual(text(of: left), text(of: right))
    }
}
