public import HTTPTypes

/// The value of `Content-Range` in a 206 or 416 (RFC 9110 §14.4).
public enum ContentRange: Hashable, Sendable {
    /// `bytes a-b/N` or `bytes a-b/*`: the half-open range enclosed, and the complete length if
    /// the sender knows it. The range is never empty and lies within the length.
    case bytes(Range<Int64>, completeLength: Int64?)
    /// `bytes */N`: the requested range does not exist in N bytes.
    case unsatisfied(completeLength: Int64)

    /// Reads a field value.
    ///
    /// - Throws: ``FieldSyntaxError`` for another unit, a last byte before the first, a length
    ///   that the range exceeds, a number from ``ByteOffset/limit`` on, or anything malformed. Such
    ///   a response must not be combined with others.
    public init(_ fieldValue: some StringProtocol) throws(FieldSyntaxError) {
        var scanner = FieldScanner(fieldValue.trimmingWhitespace)
        guard scanner.skip(ignoringCase: "bytes"), scanner.skip(" ") else {
            throw Self.error("the unit is not bytes")
        }
        scanner.skipWhitespace()
        if scanner.skip("*") {
            guard scanner.skip("/"), let length = try Self.number(&scanner), scanner.isAtEnd else {
                throw Self.error("a complete length must follow '*/'")
            }
            self = .unsatisfied(completeLength: length)
            return
        }
        guard let first = try Self.number(&scanner), scanner.skip("-"),
            let last = try Self.number(&scanner), scanner.skip("/")
        else { throw Self.error("it has not the form first-last/length") }
        let isUnknown = scanner.skip("*")
        let length = isUnknown ? nil : try Self.number(&scanner)
        guard isUnknown || length != nil, scanner.isAtEnd else {
            throw Self.error("the complete length is neither a number nor '*'")
        }
        guard first <= last else { throw Self.error("the last byte comes before the first") }
        guard last < length ?? .max else {
            throw Self.error("the range exceeds the complete length")
        }
        self = .bytes(first..<last + 1, completeLength: length)
    }

    /// Reads the field of a response; nil if there is none.
    ///
    /// - Throws: ``FieldSyntaxError`` if it is malformed or there are several.
    public static func parse(in fields: HTTPFields) throws(FieldSyntaxError) -> ContentRange? {
        // Several lines come joined by a comma, which no form of the value contains.
        guard let text = fields[.contentRange] else { return nil }
        return try ContentRange(text)
    }

    /// The range enclosed, or nil for `*/N`.
    public var range: Range<Int64>? {
        guard case .bytes(let range, _) = self else { return nil }
        return range
    }

    /// The complete length, or nil if the sender does not know it.
    public var completeLength: Int64? {
        switch self {
        case .bytes(_, let length): length
        case .unsatisfied(let length): length
        }
    }

    /// The field value.
    public var fieldValue: String {
        switch self {
        case .bytes(let range, let length?):
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
        case .bytes(let range, nil):
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/*"
        case .unsatisfied(let length):
            "bytes */\(length)"
        }
    }

    private static func number(_ scanner: inout FieldScanner) throws(FieldSyntaxError) -> Int64? {
        guard let number = scanner.saturatingDigits() else { return nil }
        guard number < ByteOffset.limit else { throw error("a number is too large") }
        return number
    }

    private static func error(_ reason: String) -> FieldSyntaxError {
        FieldSyntaxError(field: "Content-Range", reason: reason)
    }
}
