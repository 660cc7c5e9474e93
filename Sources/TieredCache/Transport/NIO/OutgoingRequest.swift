#if HTTPClient
import HTTPTransport
import HTTPTypes
import NIOCore

/// A request as it goes out, and where to.
struct OutgoingRequest: Sendable {
    /// What is sent after the head.
    enum Content: Sendable {
        case none
        case bytes(ByteBuffer)
        case streamed(UploadBody)
    }

    /// Where it goes.
    let peer: ConnectionPeer
    let head: RequestHead
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
        content = Content(of: request)
        peer = try ConnectionPeer(request.head, socket: request.socket)
        isAlone = !request.head.method.isRepeatable || content.isSome
        connectTimeout = request.connectTimeout
        do throws(RequestSyntaxError) {
            head = try RequestHead(
                request.head,
                authority: peer.authority,
                content: content.length,
                closes: isAlone
            )
        } catch {
            throw TransportError(.invalidRequest, error.description)
        }
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

    fileprivate var length: RequestHead.Content {
        switch self {
        case .none: .none
        case .bytes(let bytes): .length(Int64(bytes.readableBytes))
        case .streamed(let upload): upload.length.map { .length($0) } ?? .unknown
        }
    }
}

extension HTTPRequest.Method {
    /// Whether a request can be repeated if a connection turns out to be dead.
    fileprivate var isRepeatable: Bool { self == .get || self == .head }
}
#endif
