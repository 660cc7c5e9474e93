/// The attributes of a start tag by name, their references decoded.
struct XMLValues {
    private var values: [String: String] = [:]

    init(_ bytes: [UInt8], attributes: Range<Int>) {
        for attribute in XMLAttributes(bytes[attributes]) {
            let name = String(decoding: attribute.name.local, as: UTF8.self)
            if values[name] == nil { values[name] = Self.decoded(bytes[attribute.value]) }
        }
    }

    subscript(name: String) -> String? { values[name] }

    /// The value as an integer; nil if it is none.
    func integer(_ name: String) -> Int64? { values[name].flatMap { Int64($0) } }

    /// The text with predefined entities and numeric character references decoded.
    static func decoded(_ text: ArraySlice<UInt8>) -> String {
        let text = String(decoding: text, as: UTF8.self)
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var result = ""
        var rest = text[...]
        while let mark = rest.firstIndex(of: "&") {
            result += rest[..<mark]
            rest = rest[mark...]
            guard let end = rest.prefix(12).firstIndex(of: ";"),
                let character = character(rest[rest.index(after: mark)..<end])
            else {
                result.append("&")
                rest = rest.dropFirst()
                continue
            }
            result.append(character)
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    private static func character(_ name: Substring) -> Character? {
        switch name {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default: break
        }
        guard name.hasPrefix("#") else { return nil }
        let digits = name.dropFirst()
        let number =
            digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return number.flatMap { Unicode.Scalar($0) }.map { Character($0) }
    }
}
