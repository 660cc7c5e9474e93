/// The line in front of a chunk (RFC 9112 §7.1).
enum ChunkSize {
    /// Reads a size in hexadecimal digits and ignores the rest of the line.
    ///
    /// The parser refuses everything but extensions there, such as in `0x10` or `10 `
    /// (RequestGuardTests).
    ///
    /// - Parameter line: the line without its end.
    /// - Returns: the size; 0 for the last chunk.
    /// - Throws: ``RequestRefusal`` for anything else, such as `+10` or 17 digits.
    static func parse(_ line: UnsafeRawBufferPointer) throws(RequestRefusal) -> Int64 {
        var size: Int64 = 0
        var count = 0
        for byte in line {
            guard let digit = hexadecimalDigit(byte) else { break }
            count += 1
            // 60 bits, so that sums with it fit into `Int64`.
            guard count <= 15 else { throw .malformed("a chunk size has too many digits") }
            size = size << 4 | Int64(digit)
        }
        guard count > 0 else { throw .malformed("a chunk has no size") }
        return size
    }

    private static func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
