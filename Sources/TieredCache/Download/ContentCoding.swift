import HTTPCaching
package import HTTPTypes

/// The content coding of a response, although `identity` was requested (RFC 9110 §8.4).
package enum ContentCoding: Hashable, Sendable {
    /// No coding, or something that is none, such as the name of a charset.
    case identity
    /// RFC 1952.
    case gzip
    /// RFC 1950; some origins wrongly send bare RFC 1951.
    case deflate
    /// An unsupported coding, or several.
    case unknown(String)

    /// The registered content codings (IANA, HTTP Content Coding Registry), `identity` left out.
    private static let registered: Set<String> = [
        "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip",
        "x-compress", "x-gzip", "zstd",
    ]

    /// Parses `Content-Encoding`.
    package init(in fields: HTTPFields) {
        let text = (fields.value(of: .contentEncoding) ?? "").lowercased()
            .split(separator: ",", omittingEmptySubsequences: true)
            .map { String($0.trimmed) }
            .filter { Self.registered.contains($0) }
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
