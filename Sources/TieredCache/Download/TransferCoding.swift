import HTTPCaching
package import HTTPTypes

/// The transfer coding of a message (RFC 9112 §6.1); requests accept only framing.
package enum TransferCoding: Hashable, Sendable {
    /// None; `identity` is an obsolete name for it.
    case none
    /// Chunks, which the transport decodes.
    case chunked
    /// A compression or another coding, which is not decoded.
    case unknown

    /// Parses `Transfer-Encoding`.
    package init(in fields: HTTPFields) {
        switch fields.value(of: .transferEncoding)?.lowercased() {
        case nil, "identity": self = .none
        case "chunked": self = .chunked
        default: self = .unknown
        }
    }
}
