import FoundationEssentials

/// Encodes and decodes the JSON (RFC 8259) of this program: one line for each value, its members
/// sorted by name.
enum JSONLine {
    /// Encodes a value as one line.
    ///
    /// - Throws: ``CommandFailure`` for a number that JSON cannot represent, such as infinity.
    static func text(of value: some Encodable) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
        } catch {
            throw CommandFailure(
                .localFailed,
                message: "a report cannot be written as JSON: \(error)"
            )
        }
    }

    /// Decodes a line.
    static func value<Value: Decodable>(
        of line: some StringProtocol,
        as type: Value.Type = Value.self
    ) throws -> Value {
        try JSONDecoder().decode(type, from: Data(line.utf8))
    }

    /// Escapes characters that JSON allows in a string, but that control a terminal or end a line.
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

/// A member that is encoded as null if there is no value, instead of being omitted.
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
