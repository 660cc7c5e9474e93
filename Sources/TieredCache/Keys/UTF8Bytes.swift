import CLinuxCalls
import CXXHash

/// Strings as the bytes that they are: hashed and compared without Unicode's equivalences.
///
/// Swift's `String` hashes and compares normalised characters with SipHash; a key is compared as
/// an origin would, byte for byte, and several times faster. The C functions
/// are inlined in this module; in others each is one call, because they do not import C.
@usableFromInline
enum UTF8Bytes {
    /// A hash of the bytes, seeded per process so that collisions cannot be crafted.
    @usableFromInline
    static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard bytes.count >= 16, bytes.count <= 128 else { return hashOfUncommonLength(bytes) }
        return tc_hash_short_key(bytes.baseAddress, bytes.count)
    }

    @inline(never)
    private static func hashOfUncommonLength(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        XXH3_64bits_withSeed(bytes.baseAddress, bytes.count, tc_key_seed())
    }

    /// Whether two strings have the same bytes.
    @inlinable
    @inline(__always)
    static func areEqual(_ left: String, _ right: String) -> Bool {
        of(left) { left in
            of(right) { right in left.count == right.count && areEqual(left, right) }
        }
    }

    @inlinable
    @inline(__always)
    static func areEqual(
        _ left: UnsafeBufferPointer<UInt8>,
        _ right: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard let left = left.baseAddress, let other = right.baseAddress else {
            return right.isEmpty
        }
        return areEqual(left, other, count: right.count)
    }

    /// Whether two pieces of memory hold the same bytes.
    @usableFromInline
    static func areEqual(
        _ left: UnsafePointer<UInt8>,
        _ right: UnsafePointer<UInt8>,
        count: Int
    ) -> Bool {
        tc_equal_keys(left, right, count)
    }

    /// Copies bytes to where no other bytes of them are.
    @usableFromInline
    static func copy(
        _ bytes: UnsafePointer<UInt8>,
        to target: UnsafeMutablePointer<UInt8>,
        count: Int
    ) {
        tc_copy_key(target, bytes, count)
    }

    /// Passes the bytes of `string` to `body`, without a copy unless the string is bridged.
    @inlinable
    @inline(__always)
    static func of<Result>(
        _ string: String,
        body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable(body) {
            return result
        }
        var copy = string
        return copy.withUTF8(body)
    }
}
