/// One bare item of a structured field (RFC 8941 §3.3).
enum StructuredItem {
    /// Takes an item; nil if what comes next is none.
    static func parse(_ scanner: inout FieldScanner) -> StructuredDictionary.Value? {
        guard let first = scanner.next else { return nil }
        switch first {
        case UInt8(ascii: "\""):
            return string(&scanner).map { .string($0) }
        case UInt8(ascii: "?"):
            return boolean(&scanner)
        case UInt8(ascii: ":"):
            return byteSequence(&scanner)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return number(&scanner)
        case _ where first.isLetter || first == UInt8(ascii: "*"):
            return .token(token(&scanner))
        default:
            return nil
        }
    }

    /// An integer of at most 15 digits, or a decimal of at most 12 and 3.
    private static func number(_ scanner: inout FieldScanner) -> StructuredDictionary.Value? {
        let isNegative = scanner.skip("-")
        let digits = scanner.take(while: \.isDigit)
        guard (1...15).contains(digits.count) else { return nil }
        if scanner.skip(".") {
            let fraction = scanner.take(while: \.isDigit)
            return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
        }
        let number = digits.reduce(into: Int64(0)) { $0 = $0 * 10 + Int64($1 & 0xF) }
        return .integer(isNegative ? -number : number)
    }

    /// Printable ASCII in quotes, of which only the quote and the backslash are escaped.
    private static func string(_ scanner: inout FieldScanner) -> String? {
        _ = scanner.skip("\"")
        var content: [UInt8] = []
        while let byte = scanner.take(count: 1).first {
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = scanner.take(count: 1).first, "\"\\".utf8.contains(escaped)
                else { return nil }
                content.append(escaped)
            case 0x20...0x7E:
                content.append(byte)
            default:
                return nil
            }
        }
        return nil
    }

    private static func boolean(_ scanner: inout FieldScanner) -> StructuredDictionary.Value? {
        _ = scanner.skip("?")
        if scanner.skip("1") { return .boolean(true) }
        return scanner.skip("0") ? .boolean(false) : nil
    }

    private static func byteSequence(
        _ scanner: inout FieldScanner
    ) -> StructuredDictionary.Value? {
        _ = scanner.skip(":")
        _ = scanner.take { $0.isLetter || $0.isDigit || "+/=".utf8.contains($0) }
        return scanner.skip(":") ? .other : nil
    }

    private static func token(_ scanner: inout FieldScanner) -> String {
        let bytes = scanner.take {
            $0.isTokenCharacter || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/")
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
