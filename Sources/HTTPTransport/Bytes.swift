#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension UInt8 {
    static let tab = UInt8(ascii: "\t")
    static let lineFeed = UInt8(ascii: "\n")
    static let carriageReturn = UInt8(ascii: "\r")
    static let space = UInt8(ascii: " ")
    static let colon = UInt8(ascii: ":")
    static let zero = UInt8(ascii: "0")

    var isDigit: Bool { self >= .zero && self <= UInt8(ascii: "9") }
}

extension UnsafeRawBufferPointer {
    /// Where the next line ends.
    func firstLineFeed(from start: Int) -> Int? {
        guard start < count, let base = baseAddress,
            let found = memchr(base + start, Int32(UInt8.lineFeed), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// Without spaces and tabs around (RFC 9110 §5.6.3).
    var trimmingSpaces: Slice<UnsafeRawBufferPointer> {
        var trimmed = self
        while let first = trimmed.first, first == .space || first == .tab { trimmed.removeFirst() }
        return trimmed.droppingSpacesAtEnd
    }

    var droppingSpacesAtEnd: Slice<UnsafeRawBufferPointer> {
        var trimmed = self
        while let last = trimmed.last, last == .space || last == .tab { trimmed.removeLast() }
        return trimmed
    }
}
