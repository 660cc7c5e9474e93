/// A lenient parser of the directives of `Cache-Control` (RFC 9111 §5.2).
///
/// Accepts whitespace around commas and `=`, empty elements, any case and quoted arguments. Text
/// between an argument and the next comma makes the argument invalid. An unclosed quoted string
/// ends at the next comma, so that later restrictions are not missed.
enum CacheControlParsing {
    /// The argument of a directive.
    enum Argument {
        /// No `=`.
        case none
        /// The text, without quotes.
        case text(String)
        /// Neither a token nor a quoted string.
        case invalid
    }

    /// Calls `body` with each directive, its name in lower case.
    static func forEachDirective(in fieldValue: String, _ body: (String, Argument) -> Void) {
        var scanner = FieldScanner(fieldValue)
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            if let name = scanner.token() {
                body(name.lowercased(), argument(&scanner))
            }
            _ = scanner.take { $0 != UInt8(ascii: ",") }
            _ = scanner.skip(",")
        }
    }

    private static func argument(_ scanner: inout FieldScanner) -> Argument {
        scanner.skipWhitespace()
        guard scanner.skip("=") else { return .none }
        scanner.skipWhitespace()
        // RFC 9111 §5.2: a recipient should accept both forms for every directive.
        guard let text = scanner.quotedString() ?? scanner.token() else { return .invalid }
        scanner.skipWhitespace()
        let isComplete = scanner.isAtEnd || scanner.next == UInt8(ascii: ",")
        return isComplete ? .text(text) : .invalid
    }
}

extension CacheControlParsing.Argument {
    /// The argument as a number of seconds (RFC 9111 §1.2.2), at most 2^31; nil if it is none.
    var seconds: Int64? {
        guard case .text(let text) = self else { return nil }
        return DeltaSeconds.parse(text)
    }

    /// The field names of a qualified directive, in lower case; empty if it is unqualified.
    var fieldNames: [String] {
        guard case .text(let text) = self else { return [] }
        return FieldNameList.parse(text)
    }
}

/// Parses `delta-seconds`: a duration in whole seconds (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The longest duration, 68 years, so that sums never overflow.
    static let maximum: Int64 = 1 << 31

    /// Parses digits only; a larger number becomes ``maximum``.
    static func parse(_ text: some StringProtocol) -> Int64? {
        var scanner = FieldScanner(text)
        guard let number = scanner.saturatingDigits(), scanner.isAtEnd else { return nil }
        // RFC 9111 §1.2.2: what does not fit counts as 2^31.
        return min(number, maximum)
    }
}

/// Parses a list of field names, as in `Vary`, `Connection` and qualified directives.
enum FieldNameList {
    /// The names in lower case; elements that are no tokens are skipped.
    static func parse(_ fieldValue: String) -> [String] {
        var names: [String] = []
        var scanner = FieldScanner(fieldValue)
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            if let name = scanner.token() {
                names.append(name.lowercased())
            }
            _ = scanner.take { $0 != UInt8(ascii: ",") }
            _ = scanner.skip(",")
        }
        return names
    }
}
