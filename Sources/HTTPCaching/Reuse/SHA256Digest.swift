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
        guard let algorithm = DigestAlgorithm.sha256 else {
            // The engine refuses to start without it.
            preconditionFailure("libcrypto has no SHA-256: it needs its default provider")
        }
        return String(unsafeUninitializedCapacity: 64) { text in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { digest in
                guard
                    EVP_Digest(
                        bytes.baseAddress,
                        bytes.count,
                        digest.baseAddress,
                        nil,
                        algorithm.type,
                        nil
                    ) == 1
                else { preconditionFailure("libcrypto has no memory for a digest") }
                for (index, byte) in digest.enumerated() {
                    text[2 * index] = digit(byte >> 4)
                    text[2 * index + 1] = digit(byte & 15)
                }
                return 64
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
}
