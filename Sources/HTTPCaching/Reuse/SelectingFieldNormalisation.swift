/// Makes values of request fields equal that mean the same (RFC 9111 §4.1).
///
/// Elements of lists lose the whitespace around them, in any field. In `Accept-Encoding` and
/// `Accept-Language` order and case mean nothing, so they are sorted in lower case.
///
/// | field | value | normalised |
/// | --- | --- | --- |
/// | any | ` 1 ,2` | `1,2` |
/// | any | `"a , b" , c` | `"a , b",c` |
/// | `Accept-Language` | `en, DE;q=0.5` | `de;q=0.5,en` |
enum SelectingFieldNormalisation {
    static func normalised(_ value: String, of name: String) -> String {
        let elements = elements(of: value)
        switch name {
        case "accept-encoding", "accept-language":
            return elements.map { withoutWhitespace($0.lowercased()) }.sorted()
                .joined(separator: ",")
        default:
            return elements.joined(separator: ",")
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
