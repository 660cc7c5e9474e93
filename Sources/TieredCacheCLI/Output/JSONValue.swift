/// A JSON text (RFC 8259) on one line, its members in the order given.
///
/// Hand-made, because the few shapes that go out have a documented order of keys, which
/// Foundation's encoder does not keep.
enum JSONValue: Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([Member])

    /// A name and its value.
    struct Member: Equatable {
        let name: String
        let value: JSONValue

        init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// The text, without a line break anywhere.
    var text: String {
        var text = ""
        append(to: &text)
        return text
    }

    private func append(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let value): text += Self.number(value)
        case .string(let value): Self.append(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.append(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.append(member.name, to: &text)
                text += ":"
                member.value.append(to: &text)
            }
            text += "}"
        }
    }

    /// JSON knows no infinity and no NaN.
    private static func number(_ value: Double) -> String {
        value.isFinite ? String(value) : "null"
    }

    private static func append(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            // Line separators are legal in JSON but not in what many programs read as a line.
            case "\0"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

extension JSONValue {
    /// The integer, or null.
    static func optional(_ value: Int64?) -> JSONValue { value.map { .integer($0) } ?? .null }
}
