package import HTTPTypes

/// How a message is coded for its way (RFC 9112 §6.1); we ask for no more than framing.
package enum TransferCoding: Hashable, Sendable {
    /// Not at all; `identity` is how it was once spelt.
    case none
    /// In chunks, which the transport takes apart.
    case chunked
    /// Compressed as well, which nobody takes apart.
    case unknown

    /// Reads `Transfer-Encoding`.
    package init(in fields: HTTPFields) {
        switch fields[.transferEncoding]?.lowercased() {
        case nil, "identity": self = .none
        case "chunked": self = .chunked
        default: self = .unknown
        }
    }
}
