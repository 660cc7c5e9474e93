import HTTPTypes
import NIOCore
import NIOHTTP1

/// The head of an answer, and how its body is framed.
struct ResponseHead: Sendable {
    /// How a client finds the end of the body.
    enum Framing: Hashable, Sendable {
        /// `Content-Length`, also of a body that is left out because the request was a HEAD.
        case length(Int64)
        /// Chunks, or the end of the connection for HTTP/1.0.
        case unknown
        /// The status has no body and no length: 1xx, 204, 304.
        case none
    }

    var status: Int
    /// Without those that are about the connection or the framing.
    var fields: HTTPFields
    var framing: Framing

    /// The reason phrase; nil for the usual one.
    var reason: String?

    /// Further field lines as they go on the wire, `Date` among them; nil for none.
    var lines: ByteBuffer?

    init(status: Int, reason: String? = nil, fields: HTTPFields = [:], framing: Framing) {
        self.status = status
        self.reason = reason?.isEmpty == true ? nil : reason
        self.fields = fields
        self.framing = framing
    }

    /// What an encoding depends on beside the head.
    struct Connection {
        var isHTTP10 = false
        var persists = true
        var date: String
    }

    private func writeStatus(into buffer: inout ByteBuffer) {
        switch (status, reason) {
        // What hits are answered with.
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

    /// Writes the head as it goes on the wire, with its empty line.
    func encode(into buffer: inout ByteBuffer, _ connection: Connection) {
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
