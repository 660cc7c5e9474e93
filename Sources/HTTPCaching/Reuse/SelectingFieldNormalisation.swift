import HTTPTypes

/// Makes values of request fields equal that mean the same (RFC 9111 §4.1).
///
/// Only of fields that are known to be lists: any other value is what the origin saw, byte for
/// byte, since it may tell apart what would be the same as a list. Elements of lists lose the
/// whitespace around them. In `Accept-Encoding` and `Accept-Language` order and case mean nothing,
/// so they are sorted in lower case.
///
/// | field | value | normalised |
/// | --- | --- | --- |
/// | `Accept` | ` a/b ,c/d,,` | `a/b,c/d` |
/// | `Accept-Language` | `en, DE;q=0.5` | `de;q=0.5,en` |
/// | any other | `a ,b` | `a ,b` |
enum SelectingFieldNormalisation {
    /// The value of a field, its name in lower case, that a request has; nil for none.
    static func value(_ name: String, of request: HTTPFields) -> String? {
        guard let field = HTTPField.Name(name), request.contains(field) else { return nil }
        // Lines of what is no list are not one line, and no value has a line feed.
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

    /// Whether a field is a list by its definition, name in lower case (RFC 9110 §12.5).
    static func isList(_ name: String) -> Bool {
        switch name {
        case "accept", "accept-charset", "accept-encoding", "accept-language": true
        default: false
        }
    }

    /// The elements between commas outside quoted strings; empty ones are left out.
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

    /// A quoted string as it is written, with quotes and escapes.
    private static func quotedBytes(_ scanner: inout FieldScanner) -> [UInt8]? {
        var ahead = scanner
        guard ahead.quotedString() != nil else { return nil }
        return Array(scanner.take(count: ahead.position - scanner.position))
    }

    private static func withoutWhitespace(_ text: String) -> String {
        String(decoding: text.utf8.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self)
    }
}
