#if HTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// A request as it goes out, checked for bytes that would break its framing.
///
/// The target goes out exactly as given: a cache must request the target that it stores under.
struct OutgoingRequest: Sendable {
    /// What is sent after the head.
    enum Content: Sendable {
        case none
        case bytes(ByteBuffer)
        case streamed(UploadBody)
    }

    /// Where it goes.
    let peer: ConnectionPeer
    let head: HTTPRequestHead
    let content: Content
    /// Whether it gets a connection that has not been idle, which is closed after it.
    ///
    /// If an origin closes an idle connection at that moment, the request gets no response, and not
    /// every request can be repeated (RFC 9110 §9.2.2).
    let isAlone: Bool
    let connectTimeout: Duration

    /// Translates a request.
    ///
    /// - Throws: ``TransportError/Kind/invalidRequest``.
    init(_ request: TransportRequest) throws(TransportError) {
        let head = request.head
        guard let target = head.path, Self.isTarget(target) else {
            throw TransportError(
                .invalidRequest,
                "the request target does not start with '/' or has a character no target has"
            )
        }
        content = Content(of: request)
        guard head.method != .connect, !(head.method == .trace && content.isSome) else {
            throw TransportError(
                .invalidRequest,
                "\(head.method.rawValue) is no method for this request"
            )
        }
        peer = try ConnectionPeer(head, socket: request.socket)
        isAlone = !head.method.isRepeatable || content.isSome
        connectTimeout = request.connectTimeout
        self.head = HTTPRequestHead(
            version: .http1_1,
            method: HTTPMethod(rawValue: head.method.rawValue),
            uri: target,
            headers: try Self.headers(
                of: head.headerFields,
                host: peer.authority,
                framing: content.framing(for: head.method),
                isAlone: isAlone
            )
        )
    }

    /// The fields as given, but for those that the connection decides about.
    private static func headers(
        of fields: HTTPFields,
        host: String,
        framing: (name: String, value: String)?,
        isAlone: Bool
    ) throws(TransportError) -> HTTPHeaders {
        var headers: [(String, String)] = []
        headers.reserveCapacity(fields.count + 3)
        if !fields.contains(where: { $0.name.canonicalName == "host" }) {
            headers.append(("Host", host))
        }
        for field in fields {
            switch field.name {
            case .contentLength, .transferEncoding: continue
            case .connection where isAlone: continue
            default: break
            }
            guard !field.value.utf8.contains(where: isControl) else {
                throw TransportError(
                    .invalidRequest,
                    "the field \(field.name) has a control character"
                )
            }
            headers.append((field.name.rawName, field.value))
        }
        if let framing { headers.append(framing) }
        if isAlone { headers.append(("Connection", "close")) }
        return HTTPHeaders(headers)
    }

    /// Whether no recipient is sure to take the byte as a part of a field's value (RFC 9110 §5.5).
    private static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7F
    }

    private static func isTarget(_ text: String) -> Bool {
        text.utf8.first == UInt8(ascii: "/")
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }
}

extension OutgoingRequest.Content {
    fileprivate init(of request: TransportRequest) {
        if let upload = request.upload {
            self = .streamed(upload)
        } else if let body = request.body, !body.isEmpty {
            self = .bytes(ByteBuffer(bytes: body))
        } else {
            self = .none
        }
    }

    fileprivate var isSome: Bool {
        if case .none = self { false } else { true }
    }

    /// The field that frames the content (RFC 9112 §6); nil if the method needs none.
    fileprivate func framing(for method: HTTPRequest.Method) -> (name: String, value: String)? {
        let length: Int64?
        switch self {
        case .none:
            switch method {
            // Without content, which these do not anticipate (RFC 9110 §8.6).
            case .get, .head, .delete, .trace: return nil
            default: length = 0
            }
        case .bytes(let bytes): length = Int64(bytes.readableBytes)
        case .streamed(let upload): length = upload.length
        }
        guard let length else { return ("Transfer-Encoding", "chunked") }
        return ("Content-Length", String(length))
    }
}

extension HTTPRequest.Method {
    /// Whether a request can be repeated if a connection turns out to be dead.
    fileprivate var isRepeatable: Bool { self == .get || self == .head }
}
#endif
