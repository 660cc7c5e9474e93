/// A field value that is a dictionary (RFC 8941 §3.2), such as `max-age=60, no-store`.
///
/// Strict, in contrast to the parser of `Cache-Control`: one error anywhere makes the whole field
/// invalid, because that is what its definition demands of every recipient.
struct StructuredDictionary: Hashable {
    /// A member's value; parameters are checked and left out.
    enum Value: Hashable {
        case boolean(Bool)
        case integer(Int64)
        case string(String)
        case token(String)
        /// A decimal, a byte sequence or an inner list, none of which a cache directive has.
        case other
    }

    /// The members in the order in which their keys first came; of repeated keys the last counts.
    private(set) var members: [(key: String, value: Value)] = []

    /// Reads all lines of a field, joined by commas; nil if they are no dictionary.
    init?(_ fieldValue: String) {
        var scanner = FieldScanner(fieldValue.trimmingSpaces)
        while !scanner.isAtEnd {
            guard let key = Self.key(&scanner) else { return nil }
            var value = Value.boolean(true)
            if scanner.skip("=") {
                guard let read = Self.memberValue(&scanner) else { return nil }
                value = read
            }
            guard Self.skipParameters(&scanner) else { return nil }
            set(key, value)
            scanner.skipWhitespace()
            guard !scanner.isAtEnd else { return }
            guard scanner.skip(",") else { return nil }
            scanner.skipWhitespace()
            guard !scanner.isAtEnd else { return nil }
        }
    }

    static func == (one: Self, other: Self) -> Bool {
        one.members.elementsEqual(other.members) { $0 == $1 }
    }

    func hash(into hasher: inout Hasher) {
        for member in members { hasher.combine(member.key) }
    }

    private mutating func set(_ key: String, _ value: Value) {
        if let index = members.firstIndex(where: { $0.key == key }) {
            members[index].value = value
        } else {
            members.append((key, value))
        }
    }

    // MARK: Parts

    private static func key(_ scanner: inout FieldScanner) -> String? {
        guard let first = scanner.next, isLowercase(first) || first == UInt8(ascii: "*") else {
            return nil
        }
        let key = scanner.take {
            isLowercase($0) || $0.isDigit || "_-.*".utf8.contains($0)
        }
        return String(decoding: key, as: UTF8.self)
    }

    private static func memberValue(_ scanner: inout FieldScanner) -> Value? {
        guard scanner.next == UInt8(ascii: "(") else { return StructuredItem.parse(&scanner) }
        _ = scanner.skip("(")
        while true {
            _ = scanner.take { $0 == 0x20 }
            if scanner.skip(")") { return .other }
            guard StructuredItem.parse(&scanner) != nil, skipParameters(&scanner) else {
                return nil
            }
            guard scanner.next == 0x20 || scanner.next == UInt8(ascii: ")") else { return nil }
        }
    }

    private static func skipParameters(_ scanner: inout FieldScanner) -> Bool {
        while scanner.skip(";") {
            _ = scanner.take { $0 == 0x20 }
            guard key(&scanner) != nil else { return false }
            if scanner.skip("="), StructuredItem.parse(&scanner) == nil { return false }
        }
        return true
    }

    private static func isLowercase(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
}

extension String {
    /// The text without leading and trailing spaces; a tab there is an error (RFC 8941 §4.2).
    fileprivate var trimmingSpaces: String {
        var bytes = Array(utf8)[...].drop { $0 == 0x20 }
        while bytes.last == 0x20 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
