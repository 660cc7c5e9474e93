package import HTTPTypes
package import NIOCore

/// The head of a request as it is sent (RFC 9112 §3), and how its content is framed.
///
/// The target goes out exactly as given: a cache must request the target that it stores under.
package struct RequestHead: Sendable {
    /// How much content follows the head.
    package enum Content: Hashable, Sendable {
        case none
        case length(Int64)
        /// As much as there is, in chunks.
        case unknown
    }

    package let method: HTTPRequest.Method
    /// What is written first.
    package let bytes: ByteBuffer
    /// Whether content goes out by ``chunk(_:)`` and ``lastChunk``.
    package let isChunked: Bool

    /// Encodes a head.
    ///
    /// - Parameters:
    ///   - request: method, path and fields; those that frame its content are not looked at.
    ///   - authority: the `Host` of a request that has none (RFC 9112 §3.2).
    ///   - content: what follows.
    ///   - closes: whether the connection is closed after it.
    /// - Throws: ``RequestSyntaxError`` for a byte that would break its framing.
    package init(
        _ request: HTTPRequest,
        authority: String,
        content: Content,
        closes: Bool
    ) throws(RequestSyntaxError) {
        guard let target = request.path, Self.isTarget(target) else { throw .invalidTarget }
        method = request.method
        guard method != .connect, method != .trace || content == .none else { throw .invalidMethod }
        let framing = Self.framing(content, for: method)
        isChunked = framing == .unknown
        var bytes = ByteBufferAllocator().buffer(
            capacity: Self.size(of: request, target, authority)
        )
        bytes.writeString(method.rawValue)
        bytes.writeInteger(UInt8.space)
        bytes.writeString(target)
        bytes.writeStaticString(" HTTP/1.1\r\n")
        if !request.headerFields.contains(where: { $0.name.canonicalName == "host" }) {
            bytes.writeField("Host", authority)
        }
        for field in request.headerFields {
            switch field.name {
            case .contentLength, .transferEncoding: continue
            case .connection where closes: continue
            default: break
            }
            let isSafe = field.withUnsafeBytesOfValue { value in
                bytes.writeString(field.name.rawName)
                bytes.writeStaticString(": ")
                bytes.writeBytes(value)
                return !value.contains(where: Self.isControl)
            }
            guard isSafe else { throw .controlCharacter(in: field.name) }
            bytes.writeStaticString("\r\n")
        }
        switch framing {
        case .none: break
        case .length(let length): bytes.writeField("Content-Length", String(length))
        case .unknown: bytes.writeStaticString("Transfer-Encoding: chunked\r\n")
        }
        if closes { bytes.writeStaticString("Connection: close\r\n") }
        bytes.writeStaticString("\r\n")
        self.bytes = bytes
    }

    /// Methods that anticipate content say that they have none (RFC 9110 §8.6).
    private static func framing(_ content: Content, for method: HTTPRequest.Method) -> Content {
        guard content == .none else { return content }
        switch method {
        case .get, .head, .delete, .trace: return .none
        default: return .length(0)
        }
    }

    /// An estimate, so that the bytes are written into one block.
    private static func size(of request: HTTPRequest, _ target: String, _ authority: String) -> Int
    {
        request.headerFields.reduce(128 + target.utf8.count + authority.utf8.count) { size, field in
            size + 4 + field.name.rawName.utf8.count + field.withUnsafeBytesOfValue(\.count)
        }
    }

    /// Whether no recipient is sure to take the byte as a part of a field's value (RFC 9110 §5.5).
    private static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 && byte != .tab || byte == 0x7F
    }

    private static func isTarget(_ text: String) -> Bool {
        text.utf8.first == UInt8(ascii: "/")
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    // MARK: Content in chunks

    /// A chunk (RFC 9112 §7.1); its bytes are copied.
    package static func chunk(_ bytes: ByteBuffer) -> ByteBuffer {
        let size = String(bytes.readableBytes, radix: 16)
        let length = size.utf8.count + 4 + bytes.readableBytes
        var chunk = ByteBufferAllocator().buffer(capacity: length)
        chunk.writeString(size)
        chunk.writeStaticString("\r\n")
        chunk.writeImmutableBuffer(bytes)
        chunk.writeStaticString("\r\n")
        return chunk
    }

    /// The end of content in chunks.
    package static let lastChunk = ByteBuffer(string: "0\r\n\r\n")
}

/// Why a request cannot be sent.
package struct RequestSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// For people.
    package let description: String

    private init(_ description: String) {
        self.description = description
    }

    static let invalidTarget = RequestSyntaxError(
        "the request target does not start with '/' or has a character no target has"
    )
    static let invalidMethod = RequestSyntaxError("the method is none for this request")

    static func controlCharacter(in name: HTTPField.Name) -> RequestSyntaxError {
        RequestSyntaxError("the field \(name) has a control character")
    }
}

extension ByteBuffer {
    fileprivate mutating func writeField(_ name: StaticString, _ value: String) {
        writeStaticString(name)
        writeStaticString(": ")
        writeString(value)
        writeStaticString("\r\n")
    }
}
