/// One field line of a request's head, cut and checked (RFC 9112 §5).
struct FieldLine {
    let name: UnsafeRawBufferPointer
    /// Without the white space around it.
    let value: UnsafeRawBufferPointer

    /// Cuts a line.
    ///
    /// - Parameter line: without its end, not empty.
    /// - Throws: ``RequestRefusal`` for folded lines, white space in or behind the name, a name
    ///   that is no token, and control characters.
    init(_ line: UnsafeRawBufferPointer) throws(RequestRefusal) {
        guard let first = line.first, first != 0x20, first != 0x09 else {
            throw .malformed("a field line is folded")
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
            throw .malformed("a field line has no name")
        }
        name = UnsafeRawBufferPointer(rebasing: line[..<colon])
        guard name.allSatisfy({ TokenCharacters.contains($0) }) else {
            throw .malformed("a field name is not a token")
        }
        var value = line[(colon + 1)...]
        guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw .malformed("a field value has a control character")
        }
        // What the parser behind this would replace is refused rather than changed.
        guard UTF8Text.isValid(value) else { throw .malformed("a field value is not UTF-8") }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        self.value = UnsafeRawBufferPointer(rebasing: value)
    }

    /// Whether the name is `lowercase`, whatever its case.
    func isNamed(_ lowercase: StaticString) -> Bool { name.equalsIgnoringCase(lowercase) }
}

extension UnsafeRawBufferPointer {
    /// Compares with a text in lower case, whatever the case of ASCII letters here.
    func equalsIgnoringCase(_ lowercase: StaticString) -> Bool {
        guard count == lowercase.utf8CodeUnitCount else { return false }
        return lowercase.withUTF8Buffer { other in
            for index in 0..<count {
                let byte = self[index]
                let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                guard (isUpper ? byte | 0x20 : byte) == other[index] else { return false }
            }
            return true
        }
    }
}

/// Bytes that can be handled as text without being changed.
enum UTF8Text {
    static func isValid(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
    }
}

/// The characters of a token (RFC 9110 §5.6.2) as two words of bits.
enum TokenCharacters {
    private static let low: UInt64 = bits(0)
    private static let high: UInt64 = bits(64)

    @inline(__always)
    static func contains(_ byte: UInt8) -> Bool {
        guard byte < 128 else { return false }
        return (byte < 64 ? low >> UInt64(byte) : high >> UInt64(byte - 64)) & 1 == 1
    }

    private static func bits(_ start: UInt8) -> UInt64 {
        let characters = Array(
            "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8
        )
        return characters.reduce(0) { bits, byte in
            byte >= start && byte - start < 64 ? bits | 1 << UInt64(byte - start) : bits
        }
    }
}
