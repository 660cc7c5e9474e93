import CLibcrypto

/// SHA-256 (FIPS 180-4) of short texts, to compare secrets without storing them.
package enum SHA256Digest {
    /// The digest of the text's UTF-8 in 64 hexadecimal digits.
    package static func hex(of text: String) -> String {
        var text = text
        return text.withUTF8 { hex(of: UnsafeRawBufferPointer($0)) }
    }

    /// The digest of `bytes` in 64 hexadecimal digits.
    package static func hex(of bytes: UnsafeRawBufferPointer) -> String {
        hex(of: bytes, by: .sha256)
    }

    /// The same by an algorithm of libcrypto; by ``PortableSHA256`` without one, as where the
    /// process has loaded no provider with it, and where libcrypto has no memory.
    static func hex(of bytes: UnsafeRawBufferPointer, by algorithm: DigestAlgorithm?) -> String {
        String(unsafeUninitializedCapacity: 64) { text in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { digest in
                if !digests(bytes, by: algorithm, into: digest) {
                    PortableSHA256.digest(bytes, into: digest)
                }
                for (index, byte) in digest.enumerated() {
                    text[2 * index] = digit(byte >> 4)
                    text[2 * index + 1] = digit(byte & 15)
                }
                return 64
            }
        }
    }

    private static func digests(
        _ bytes: UnsafeRawBufferPointer,
        by algorithm: DigestAlgorithm?,
        into digest: UnsafeMutableBufferPointer<UInt8>
    ) -> Bool {
        guard let algorithm else { return false }
        let (start, count) = (bytes.baseAddress, bytes.count)
        return EVP_Digest(start, count, digest.baseAddress, nil, algorithm.type, nil) == 1
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
}
