import FoundationEssentials

/// Writes and reads the JSON (RFC 8259) of this program's outputs: one line for each value, its
/// members sorted by name.
enum JSONLine {
    /// The text of `value`, without a line break anywhere.
    ///
    /// - Throws: for a number that JSON has not, such as infinity.
    static func text(of value: some Encodable) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
        } catch {
            throw CommandFailure(.localFailed, "a report cannot be written as JSON: \(error)")
        }
    }

    /// The value that `line` is the text of.
    static func value<Value: Decodable>(
        of line: some StringProtocol,
        as type: Value.Type = Value.self
    ) throws -> Value {
        try JSONDecoder().decode(type, from: Data(line.utf8))
    }

    /// Escapes what JSON allows in a string and a terminal or a reader of lines takes for a command
    /// or a line's end.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

/// A member that is null where there is no value, instead of being left out.
@propertyWrapper
struct Nullable<Value: Codable & Equatable & Sendable>: Encodable, Equatable, Sendable {
    var wrappedValue: Value?

    init(wrappedValue: Value?) {
        self.wrappedValue = wrappedValue
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
