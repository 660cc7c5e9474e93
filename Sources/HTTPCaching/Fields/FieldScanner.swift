/// Scans a field value from left to right (RFC 9110 §5.6); never past its end.
struct FieldScanner {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: some StringProtocol) {
        bytes = Array(text.utf8)
    }

    var isAtEnd: Bool { position >= bytes.count }

    var next: UInt8? { isAtEnd ? nil : bytes[position] }

    /// Skips optional whitespace: spaces and tabs.
    mutating func skipWhitespace() {
        while let byte = next, byte == 0x20 || byte == 0x09 {
            position += 1
        }
    }

    /// Skips `byte` if it comes next.
    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: byte) else { return false }
        position += 1
        return true
    }

    /// Skips `text`, which is ASCII in lower case, if it comes next in any case.
    mutating func skip(ignoringCase text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        let matches = text.withUTF8Buffer { expected in
            expected.indices.allSatisfy { expected[$0] == bytes[position + $0].lowercasedASCII }
        }
        guard matches else { return false }
        position += count
        return true
    }

    /// Takes bytes as long as `predicate` holds; possibly none.
    mutating func take(while predicate: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = next, predicate(byte) {
            position += 1
        }
        return bytes[start..<position]
    }

    /// Takes `count` bytes, or as many as there are.
    mutating func take(count: Int) -> ArraySlice<UInt8> {
        let start = position
        position = min(bytes.count, position + max(0, count))
        return bytes[start..<position]
    }

    /// Takes a token (RFC 9110 §5.6.2), or nil if none comes next.
    mutating func token() -> String? {
        let token = take(while: \.isTokenCharacter)
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    /// Takes a quoted string (RFC 9110 §5.6.4) without its quotes and escapes.
    ///
    /// Returns nil and takes nothing if none comes next or it is not closed.
    mutating func quotedString() -> String? {
        let start = position
        guard skip("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = next {
            position += 1
            if byte == UInt8(ascii: "\"") {
                return String(decoding: content, as: UTF8.self)
            }
            // RFC 9110 §5.6.4: a recipient takes the octet behind the backslash, whatever it is.
            guard byte == UInt8(ascii: "\\"), let escaped = next else {
                content.append(byte)
                continue
            }
            position += 1
            content.append(escaped)
        }
        position = start
        return nil
    }

    /// Takes one or more digits, or nil if none comes next; a value above Int64 becomes its
    /// maximum.
    mutating func saturatingDigits() -> Int64? {
        let digits = take(while: \.isDigit)
        return digits.isEmpty ? nil : Self.saturatingNumber(digits)
    }

    /// Takes exactly `count` digits, or nil (nothing taken) if fewer or more come next.
    mutating func digits(exactly count: Int) -> Int? {
        let start = position
        let digits = take(while: \.isDigit)
        guard digits.count == count, count <= 18 else {
            position = start
            return nil
        }
        return Int(Self.saturatingNumber(digits))
    }

    private static func saturatingNumber(_ digits: ArraySlice<UInt8>) -> Int64 {
        var number: Int64 = 0
        for digit in digits {
            let (product, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflow2) = product.addingReportingOverflow(Int64(digit & 0xF))
            // RFC 9110 §8.6: a recipient must expect numerals that no integer type holds.
            guard !overflow, !overflow2 else { return .max }
            number = sum
        }
        return number
    }
}

extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }

    // Bit 5 is all that differs between the two cases of an ASCII letter.
    var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }

    var lowercasedASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }

    /// Whether a token may hold the byte (RFC 9110 §5.6.2).
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
            UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default:
            isDigit || isLetter
        }
    }
}

extension StringProtocol {
    /// The text without leading and trailing spaces and tabs (RFC 9110 §5.5).
    var trimmingWhitespace: String {
        let isWhitespace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        var bytes = Array(utf8)[...].drop(while: isWhitespace)
        while let last = bytes.last, isWhitespace(last) {
            bytes.removeLast()
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
