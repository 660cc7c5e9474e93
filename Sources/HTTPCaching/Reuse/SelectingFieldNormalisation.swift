import HTTPTypes

/// Normalises request fields, so that equivalent values compare equal (RFC 9111 §4.1).
///
/// Applies only to fields that are known to be lists. Other values stay as they are, because an
/// origin may distinguish values that would be equal as lists. List elements lose surrounding
/// whitespace. In `Accept-Encoding` and `Accept-Language` order and case have no meaning, so
/// elements are converted to lower case and sorted.
///
/// | field | value | normalised |
/// | --- | --- | --- |
/// | `Accept` | ` a/b ,c/d,,` | `a/b,c/d` |
/// | `Accept-Language` | `en, DE;q=0.5` | `de;q=0.5,en` |
/// | any other | `a ,b` | `a ,b` |
enum SelectingFieldNormalisation {
    /// The normalised value of a request field; nil if there is none.
    ///
    /// The name is in lower case.
    static func value(_ name: String, of request: HTTPFields) -> String? {
        guard let field = HTTPField.Name(name), request.contains(field) else { return nil }
        // Lines of other fields must not be joined by commas; no value contains a line feed.
        let separator = isList(name) ? ", " : "\n"
        return normalised(request[values: field].joined(separator: separator), of: name)
    }

    static func normalised(_ value: String, of name: String) -> String {
        guard isList(name) else { return value.trimmingWhitespace }
        let elements = elements(of: value)
        switch name {
        case "accept-encoding", "accept-language":
            return elements.map { withoutWhitespace($0.lowercased()) }.sorted()
                .joined(separator: ",")
        default:
            return elements.joined(separator: ",")
        }
    }

    /// Whether a field is defined as a list (RFC 9110 §12.5).
    ///
    /// The name is in lower case.
    static func isList(_ name: String) -> Bool {
        switch name {
        case "accept", "accept-charset", "accept-encoding", "accept-language": true
        default: false
        }
    }

    /// The elements between commas outside quoted strings, without empty ones.
    private static func elements(of value: String) -> [String] {
        var elements: [String] = []
        var scanner = FieldScanner(value)
        while !scanner.isAtEnd {
            var element: [UInt8] = []
            while let byte = scanner.next, byte != UInt8(ascii: ",") {
                element += quotedBytes(&scanner) ?? Array(scanner.take(count: 1))
            }
            _ = scanner.skip(",")
            let text = String(decoding: element, as: UTF8.self).trimmingWhitespace
            if !text.isEmpty {
                elements.append(text)
            }
        }
        return elements
    }

    /// A quoted string with its quotes and escapes.
    private static func quotedBytes(_ scanner: inout FieldScanner) -> [UInt8]? {
        var ahead = scanner
        guard ahead.quotedString() != nil else { return nil }
        return Array(scanner.take(count: ahead.position - scanner.position))
    }

    private static func withoutWhitespace(_ text: String) -> String {
        String(decoding: text.utf8.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self)
    }
}
