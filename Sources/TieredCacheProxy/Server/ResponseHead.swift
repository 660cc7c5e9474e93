import HTTPTypes
import NIOCore
import NIOHTTP1

/// The head of a response, and the framing of its body.
struct ResponseHead: Sendable {
    /// How a client finds the end of the body.
    enum Framing: Hashable, Sendable {
        /// `Content-Length`, also for a body that is omitted because the request was a HEAD.
        case length(Int64)
        /// Chunks; for HTTP/1.0 the end of the connection.
        case unknown
        /// No body and no length: 1xx, 204, 304.
        case none
    }

    var status: Int
    /// The fields, without those about the connection or the framing.
    var fields: HTTPFields
    var framing: Framing

    /// The reason phrase; nil for the standard one.
    var reason: String?

    /// Further encoded field lines, which include `Date`; nil for none.
    var lines: ByteBuffer?

    init(status: Int, reason: String? = nil, fields: HTTPFields = [:], framing: Framing) {
        self.status = status
        self.reason = reason?.isEmpty == true ? nil : reason
        self.fields = fields
        self.framing = framing
    }

    /// The properties of the connection that an encoding depends on.
    struct Connection {
        var isHTTP10 = false
        var persists = true
        var date: String
    }

    private func writeStatus(into buffer: inout ByteBuffer) {
        switch (status, reason) {
        // The statuses of hits.
        case (200, nil):
            buffer.writeStaticString("200 OK\r\n")
        case (206, nil):
            buffer.writeStaticString("206 Partial Content\r\n")
        default:
            buffer.writeString("\(status) ")
            buffer.writeString(reason ?? HTTPResponseStatus(statusCode: status).reasonPhrase)
            buffer.writeStaticString("\r\n")
        }
    }

    /// Writes field lines.
    static func write(_ fields: HTTPFields, into buffer: inout ByteBuffer) {
        for field in fields {
            buffer.writeString(field.name.rawName)
            buffer.writeStaticString(": ")
            buffer.writeString(field.value)
            buffer.writeStaticString("\r\n")
        }
    }

    /// Encodes the head with its empty line.
    func encode(into buffer: inout ByteBuffer, connection: Connection) {
        buffer.writeStaticString("HTTP/1.1 ")
        writeStatus(into: &buffer)
        Self.write(fields, into: &buffer)
        if let lines {
            buffer.writeImmutableBuffer(lines)
        } else if status >= 200, !fields.contains(.date) {
            buffer.writeStaticString("Date: ")
            buffer.writeString(connection.date)
            buffer.writeStaticString("\r\n")
        }
        switch framing {
        case .length(let length):
            buffer.writeStaticString("Content-Length: ")
            buffer.writeString(String(length))
            buffer.writeStaticString("\r\n")
        case .unknown where !connection.isHTTP10:
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
        case .unknown, .none:
            break
        }
        if !connection.persists {
            buffer.writeStaticString("Connection: close\r\n")
        } else if connection.isHTTP10 {
            buffer.writeStaticString("Connection: keep-alive\r\n")
        }
        buffer.writeStaticString("\r\n")
    }
}
