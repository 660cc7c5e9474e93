/// The 128 bits that MD5 makes of a key; they name the entry's file and prove nothing.
///
/// Two keys may share a digest (collisions can be made on purpose); what decides a hit is the key
/// itself (invariant 1).
@_spi(Benchmarks) public struct MD5Digest: Hashable, Sendable, CustomStringConvertible {
    /// The first eight bytes, read as a big-endian number.
    public let high: UInt64
    /// The last eight bytes, read as a big-endian number.
    public let low: UInt64

    /// Creates a digest from its big-endian halves.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the digest back from ``hexadecimal``.
    ///
    /// `nil` unless the text is exactly 32 digits and lower-case letters: a name has one spelling.
    public init?(hexadecimal: String) {
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        var count = 0
        for byte in hexadecimal.utf8 {
            guard let digit = Self.value(ofDigit: byte), count < 32 else { return nil }
            if count < 16 {
                halves.high = halves.high << 4 | digit
            } else {
                halves.low = halves.low << 4 | digit
            }
            count += 1
        }
        guard count == 32 else { return nil }
        self.init(high: halves.high, low: halves.low)
    }

    /// 32 lower-case hexadecimal digits, as `md5sum` prints them.
    public var hexadecimal: String {
        String(unsafeUninitializedCapacity: 32) { buffer in
            for index in 0..<16 {
                let shift = UInt64(60 - 4 * index)
                buffer[index] = Self.digit(high >> shift & 15)
                buffer[16 + index] = Self.digit(low >> shift & 15)
            }
            return 32
        }
    }

    /// The same as ``hexadecimal``.
    public var description: String { hexadecimal }

    private static func digit(_ value: UInt64) -> UInt8 {
        UInt8(value) + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }

    private static func value(ofDigit byte: UInt8) -> UInt64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        default: nil
        }
    }
}
