import CXXHash

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Strings as the bytes that they are: hashed and compared without Unicode's equivalences.
///
/// Swift's `String` hashes and compares normalised characters with SipHash; a key is compared as
/// an origin would, byte for byte, and several times faster.
@usableFromInline
enum UTF8Bytes {
    private static let seed = UInt64.random(in: .min ... .max)

    /// XXH3 of the bytes, seeded per process so that nobody can craft collisions.
    @usableFromInline
    static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
        XXH3_64bits_withSeed(bytes.baseAddress, bytes.count, seed)
    }

    /// Whether the bytes equal as many bytes at `other`.
    @usableFromInline
    static func areEqual(
        _ bytes: UnsafeBufferPointer<UInt8>,
        _ other: UnsafePointer<UInt8>?
    ) -> Bool {
        guard let start = bytes.baseAddress, let other else { return bytes.isEmpty }
        return memcmp(start, other, bytes.count) == 0
    }

    /// Whether two strings have the same bytes.
    @inlinable
    @inline(__always)
    static func areEqual(_ left: String, _ right: String) -> Bool {
        of(left) { leftBytes in
            of(right) { rightBytes in
                leftBytes.count == rightBytes.count && areEqual(leftBytes, rightBytes.baseAddress)
            }
        }
    }

    /// Passes the bytes of `string` to `body`, without a copy unless the string is bridged.
    @inlinable
    @inline(__always)
    static func of<Result>(
        _ string: String,
        _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable(body) {
            return result
        }
        var copy = string
        return copy.withUTF8(body)
    }
}
