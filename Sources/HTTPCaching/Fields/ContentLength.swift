public import HTTPTypes

/// The number of bytes a message's content has (RFC 9110 §8.6).
public enum ContentLength {
    /// Reads the field of a message.
    ///
    /// Repeated equal values, as lines or in one line, count once.
    ///
    /// - Parameter fields: the message's header fields.
    /// - Returns: the length, or nil if there is no such field.
    /// - Throws: ``FieldSyntaxError`` if values differ, or one is no number below
    ///   ``ByteOffset/limit``: the message cannot be framed (RFC 9112 §6.3).
    public static func parse(in fields: HTTPFields) throws(FieldSyntaxError) -> Int64? {
        guard let text = fields.value(of: .contentLength) else { return nil }
        var scanner = FieldScanner(text)
        var length: Int64?
        // RFC 9110 §8.6: a list of equal numbers may count as one; any other list is an error.
        repeat {
            scanner.skipWhitespace()
            guard let number = scanner.saturatingDigits(), number < ByteOffset.limit else {
                throw FieldSyntaxError(
                    field: "Content-Length",
                    reason: "it is not a number of bytes"
                )
            }
            guard length == nil || length == number else {
                throw FieldSyntaxError(
                    field: "Content-Length",
                    reason: "it is given twice and differs"
                )
            }
            length = number
            scanner.skipWhitespace()
        } while scanner.skip(",")
        guard scanner.isAtEnd else {
            throw FieldSyntaxError(field: "Content-Length", reason: "it is not a number of bytes")
        }
        return length
    }
}
