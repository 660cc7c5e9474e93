/// Reads JSON of unknown form in one pass (RFC 8259).
///
/// `JSONDecoder` would have to try each type for each value, and throw for each that does not fit:
/// a few megabytes from a client would keep a thread for seconds. This one takes time in
/// proportion to the bytes, and recursion is bounded.
package struct JSONReader {
    /// Why bytes are no JSON that is read here.
    package struct Failure: Error, Hashable {
        /// What is wrong.
        package let reason: String
        /// The offset of the byte.
        package let offset: Int
    }

    /// How deep arrays and objects may be nested.
    package static let maximumDepth = 64

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads one value, with spaces around it and nothing else.
    ///
    /// - Throws: ``Failure``.
    package static func value(of bytes: [UInt8]) throws(Failure) -> JSONValue {
        var reader = JSONReader(bytes)
        let value = try reader.value()
        reader.skipSpaces()
        guard reader.position == bytes.count else { throw reader.failure("bytes behind the value") }
        return value
    }

    private func failure(_ reason: String) -> Failure { Failure(reason: reason, offset: position) }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpaces() {
        while let byte = next, byte == 0x20 || (9...10).contains(byte) || byte == 13 {
            position += 1
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpaces()
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func value() throws(Failure) -> JSONValue {
        skipSpaces()
        switch next {
        case UInt8(ascii: "{"):
            return try nested { (reader) throws(Failure) in try reader.object() }
        case UInt8(ascii: "["):
            return try nested { (reader) throws(Failure) in try reader.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw failure("the end in the place of a value")
        default: return try number()
        }
    }

    private mutating func nested(
        _ body: (inout JSONReader) throws(Failure) -> JSONValue
    ) throws(Failure) -> JSONValue {
        guard depth < Self.maximumDepth else { throw failure("nested too deep") }
        depth += 1
        position += 1
        let value = try body(&self)
        depth -= 1
        return value
    }

    private mutating func object() throws(Failure) -> JSONValue {
        var members: [String: JSONValue] = [:]
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpaces()
            guard next == UInt8(ascii: "\"") else { throw failure("no name of a member") }
            let name = try string()
            guard take(UInt8(ascii: ":")) else { throw failure("no colon behind a name") }
            members[name] = try value()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw failure("an object without an end") }
        return .object(members)
    }

    private mutating func array() throws(Failure) -> JSONValue {
        var elements: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            elements.append(try value())
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw failure("an array without an end") }
        return .array(elements)
    }

    private mutating func word(
        _ text: StaticString,
        _ value: JSONValue
    ) throws(Failure) -> JSONValue {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count,
            text.withUTF8Buffer({ $0.elementsEqual(bytes[position..<end]) })
        else { throw failure("no value") }
        position = end
        return value
    }

    // MARK: Numbers

    private mutating func number() throws(Failure) -> JSONValue {
        let start = position
        if next == UInt8(ascii: "-") { position += 1 }
        let first = position
        try skipDigits()
        guard bytes[first] != UInt8(ascii: "0") || position == first + 1 else {
            throw failure("a number that begins with 0")
        }
        var isWhole = true
        if next == UInt8(ascii: ".") {
            isWhole = false
            position += 1
            try skipDigits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isWhole = false
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            try skipDigits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else {
            throw failure("a number that is too large")
        }
        return .number(number)
    }

    private mutating func skipDigits() throws(Failure) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            position += 1
        }
        guard position > start else { throw failure("no digit") }
    }

    // MARK: Strings

    private mutating func string() throws(Failure) -> String {
        position += 1
        var text: [UInt8] = []
        var start = position
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                text += bytes[start..<position]
                position += 1
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw failure("a string that is not UTF-8")
                }
                return string
            case UInt8(ascii: "\\"):
                text += bytes[start..<position]
                position += 1
                try escape(into: &text)
                start = position
            case 0..<0x20:
                throw failure("a control character in a string")
            default:
                position += 1
            }
        }
        throw failure("a string without an end")
    }

    private mutating func escape(into text: inout [UInt8]) throws(Failure) {
        guard let byte = next else { throw failure("an escape without an end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(8)
        case UInt8(ascii: "f"): text.append(12)
        case UInt8(ascii: "n"): text.append(10)
        case UInt8(ascii: "r"): text.append(13)
        case UInt8(ascii: "t"): text.append(9)
        case UInt8(ascii: "u"): text += Array(String(Character(try scalar())).utf8)
        default: throw failure("an unknown escape")
        }
    }

    private mutating func scalar() throws(Failure) -> Unicode.Scalar {
        let unit = try codeUnit()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard (0xD800..<0xDC00).contains(unit), next == UInt8(ascii: "\\") else {
            throw failure("half of a pair of surrogates")
        }
        position += 1
        guard next == UInt8(ascii: "u") else { throw failure("half of a pair of surrogates") }
        position += 1
        let second = try codeUnit()
        let value = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(second) & 0x3FF)
        guard (0xDC00..<0xE000).contains(second), let scalar = Unicode.Scalar(value) else {
            throw failure("half of a pair of surrogates")
        }
        return scalar
    }

    private mutating func codeUnit() throws(Failure) -> UInt16 {
        guard position + 4 <= bytes.count else { throw failure("an escape without an end") }
        var unit: UInt16 = 0
        for byte in bytes[position..<position + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw failure("an escape without four digits")
            }
            unit = unit << 4 | UInt16(digit)
        }
        position += 4
        return unit
    }
}
