/// One field line of a request's head, split as the parser splits it (RFC 9112 §5).
struct FieldLine {
    let name: UnsafeRawBufferPointer
    /// The value without leading and trailing whitespace.
    let value: UnsafeRawBufferPointer
    /// Whether the value ends with a tab.
    let endsInTab: Bool

    /// Splits a line.
    ///
    /// Does not check for folded lines, invalid names and control characters: the parser refuses
    /// them (RequestGuardTests).
    ///
    /// - Parameter line: the line without its end, not empty.
    /// - Throws: ``RequestRefusal`` for a value that is not UTF-8, which the parser would replace.
    init(_ line: UnsafeRawBufferPointer) throws(RequestRefusal) {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        name = UnsafeRawBufferPointer(rebasing: line[..<colon])
        var value = line[colon...].dropFirst()
        guard UTF8Text.isValid(value) else { throw .malformed("a field value is not UTF-8") }
        endsInTab = value.last == 0x09
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        self.value = UnsafeRawBufferPointer(rebasing: value)
    }

    /// Whether the name equals `lowercase`, ignoring case.
    func isNamed(_ lowercase: StaticString) -> Bool { name.equalsIgnoringCase(lowercase) }
}

extension UnsafeRawBufferPointer {
    /// Compares with a text in lower case, ignoring the case of ASCII letters.
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

/// Checks that bytes can be converted to text and back without change.
enum UTF8Text {
    static func isValid(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
    }
}

/// The characters of a token (RFC 9110 §5.6.2) as a bitmap of two words.
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
