import HTTPCaching
package import HTTPTypes

/// The content coding of a response, although `identity` was requested (RFC 9110 §8.4).
package enum ContentCoding: Hashable, Sendable {
    /// No coding.
    case identity
    /// RFC 1952.
    case gzip
    /// RFC 1950; some origins wrongly send bare RFC 1951.
    case deflate
    /// An unsupported coding, or several.
    case unknown(String)

    /// Parses `Content-Encoding`.
    package init(in fields: HTTPFields) {
        let text = (fields.value(of: .contentEncoding) ?? "").lowercased()
            .split(separator: ",", omittingEmptySubsequences: true)
            .map { $0.trimmed }
            .filter { !$0.isEmpty && $0 != "identity" }
        switch text.first {
        case nil: self = .identity
        // RFC 9110 §8.4.1.3: a recipient should treat x-gzip as gzip.
        case "gzip" where text.count == 1, "x-gzip" where text.count == 1: self = .gzip
        case "deflate" where text.count == 1: self = .deflate
        default: self = .unknown(text.joined(separator: ", "))
        }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        let head = drop(while: isSpace)
        guard let last = head.lastIndex(where: { !isSpace($0) }) else { return "" }
        return head[...last]
    }
}
