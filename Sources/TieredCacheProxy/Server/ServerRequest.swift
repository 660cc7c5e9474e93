import HTTPTypes
import NIOCore
import NIOHTTP1

/// The head of a request that a client has sent.
struct ServerRequest: Sendable {
    /// As it arrived, and as the guard found it to be sound.
    let head: HTTPRequestHead
    /// Whether a body follows, be it empty.
    let hasBody: Bool
    /// The method as it stands in the request line; nil where it stands in the head.
    private let unknownMethod: String?

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - head: its head.
    ///   - unknownMethod: the method, where the parser does not know it and the head has another.
    init(_ head: HTTPRequestHead, unknownMethod: String? = nil) {
        self.head = head
        self.unknownMethod = unknownMethod
        hasBody =
            head.headers.contains(name: "transfer-encoding")
            || head.headers.first(name: "content-length").map { $0 != "0" } ?? false
    }

    /// The request target as it stands in the request line.
    var target: String { head.uri }

    var isHead: Bool { head.method == .HEAD }

    /// The method as it stands in the request line.
    var method: HTTPRequest.Method? {
        HTTPRequest.Method(unknownMethod ?? head.method.rawValue)
    }

    /// The length that the client has announced; nil for none or for chunks.
    var contentLength: Int64? {
        hasBody ? head.headers.first(name: "content-length").flatMap { Int64($0) } : nil
    }

    /// The first value of a field, or nil.
    func value(_ name: String) -> String? { head.headers.first(name: name) }

    /// All values of a field that is a list, joined by commas (RFC 9110 §5.3); nil for none.
    func list(_ name: String) -> String? {
        let values = head.headers[name]
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// All fields.
    var fields: HTTPFields {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            // The parser lets tokens pass only, which all are names.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    /// Whether the client waits for a 100 before it sends the body (RFC 9110 §10.1.1).
    var expectsContinue: Bool {
        hasBody && head.version == .http1_1
            && head.headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
    }

    /// Whether the client would use the connection again (RFC 9112 §9.3).
    var keepsAlive: Bool { head.isKeepAlive }
}
