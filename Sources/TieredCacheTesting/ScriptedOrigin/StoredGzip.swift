/// A gzip encoder (RFC 1952) that writes stored blocks, without compression.
public enum StoredGzip {
    /// The gzip-coded form of `plain`, which is slightly longer.
    public static func encode(_ plain: [UInt8]) -> [UInt8] {
        // The header: magic, deflate, no flags, no time, no extra flags, unknown system.
        var coded: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
        coded.reserveCapacity(plain.count + plain.count / 0xFFFF * 5 + 32)
        var start = 0
        repeat {
            let end = min(plain.count, start + 0xFFFF)
            let count = UInt16(end - start)
            coded.append(end == plain.count ? 1 : 0)
            append(count, to: &coded)
            append(~count, to: &coded)
            coded.append(contentsOf: plain[start..<end])
            start = end
        } while start < plain.count
        append(checksum(plain), to: &coded)
        append(UInt32(truncatingIfNeeded: plain.count), to: &coded)
        return coded
    }

    /// CRC-32 as gzip uses it.
    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = ~0
        for byte in bytes {
            crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] ^ (crc >> 8)
        }
        return ~crc
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
            value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1
        }
    }

    private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
