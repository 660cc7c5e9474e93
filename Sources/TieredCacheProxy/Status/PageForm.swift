import NIOCore

/// The values of a submitted form of the status page: `application/x-www-form-urlencoded`.
struct PageForm: Hashable, Sendable {
    private let pairs: [String: String]

    /// Parses the text of a body; malformed pairs are ignored.
    init(_ text: String) {
        var pairs: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = Self.decoded(parts[0]),
                let value = Self.decoded(parts[1])
            else { continue }
            pairs[name] = value
        }
        self.pairs = pairs
    }

    /// The value of a field, or nil.
    subscript(name: String) -> String? { pairs[name] }

    /// Reads a body of at most 64 KiB; a longer one counts as empty.
    static func read(_ body: RequestBody) async throws -> PageForm {
        var bytes = ByteBuffer()
        while var part = try await body.next() {
            guard bytes.readableBytes + part.readableBytes <= 64 << 10 else { return PageForm("") }
            bytes.writeBuffer(&part)
        }
        return PageForm(String(buffer: bytes))
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"):
                bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                let digits = Substring(rest.prefix(2))
                guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else {
                    return nil
                }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default:
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
