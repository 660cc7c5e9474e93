import HTTPTypes
import NIOCore
import NIOHTTP1

/// The head of a client's request.
struct ServerRequest: Sendable {
    /// The head as it arrived, checked by the guard.
    let head: HTTPRequestHead
    /// Whether a body follows; it may be empty.
    let hasBody: Bool
    /// The method of the request line, if ``head`` has a substitute for it.
    private let unknownMethod: String?

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - head: its head.
    ///   - unknownMethod: the method of the request line, if `head` has a substitute for it.
    init(_ head: HTTPRequestHead, unknownMethod: String? = nil) {
        self.head = head
        self.unknownMethod = unknownMethod
        hasBody =
            head.headers.contains(name: "transfer-encoding")
            || head.headers.first(name: "content-length").map { $0 != "0" } ?? false
    }

    /// The request target of the request line.
    var target: String { head.uri }

    var isHead: Bool { head.method == .HEAD }

    /// The method of the request line; nil if it is no token.
    var method: HTTPRequest.Method? {
        HTTPRequest.Method(unknownMethod ?? head.method.rawValue)
    }

    /// The announced length of the body; nil for none and for chunks.
    var contentLength: Int64? {
        hasBody ? head.headers.first(name: "content-length").flatMap { Int64($0) } : nil
    }

    /// The first value of a field; nil for none.
    func value(_ name: String) -> String? { head.headers.first(name: name) }

    /// All values of a list field, joined by commas (RFC 9110 §5.3); nil for none.
    func list(_ name: String) -> String? {
        let values = head.headers[name]
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// All fields.
    var fields: HTTPFields {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            // The parser accepts tokens only, and each token is a valid name.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    /// Whether the client waits for a 100 response before it sends the body (RFC 9110 §10.1.1).
    var expectsContinue: Bool {
        hasBody && head.version == .http1_1
            && head.headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
    }

    /// Whether the client allows the connection to persist (RFC 9112 §9.3).
    var keepsAlive: Bool { head.isKeepAlive }
}
