package import HTTPTypes
package import NIOCore

/// A request as it goes out, and where to.
package struct OutgoingRequest: Sendable {
    /// What is sent after the head.
    package enum Content: Sendable {
        case none
        case bytes(ByteBuffer)
        /// Bytes that are read while they are sent, until nil; an error ends the request.
        ///
        /// The length is nil if unknown: they are sent in chunks then.
        case streamed(length: Int64?, next: @Sendable () async throws -> ByteBuffer?)
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

    /// Encodes a request.
    ///
    /// - Parameters:
    ///   - request: its head.
    ///   - peer: where it goes.
    ///   - content: what follows the head.
    ///   - connectTimeout: the maximum wait for a connection.
    /// - Throws: ``ExchangeError/Kind/invalidRequest``.
    package init(
        _ request: HTTPRequest,
        to peer: ConnectionPeer,
        content: Content,
        connectTimeout: Duration
    ) throws(ExchangeError) {
        self.peer = peer
        self.content = content
        self.connectTimeout = connectTimeout
        isAlone = !request.method.isRepeatable || content.isSome
        do throws(RequestSyntaxError) {
            head = try RequestHead(
                request,
                authority: peer.authority,
                content: content.length,
                closes: isAlone
            )
        } catch {
            throw ExchangeError(.invalidRequest, error.description)
        }
    }
}

extension OutgoingRequest.Content {
    fileprivate var isSome: Bool {
        if case .none = self { false } else { true }
    }

    fileprivate var length: RequestHead.Content {
        switch self {
        case .none: .none
        case .bytes(let bytes): .length(Int64(bytes.readableBytes))
        case .streamed(let length, _): length.map { .length($0) } ?? .unknown
        }
    }
}

extension HTTPRequest.Method {
    /// Whether a request can be repeated if a connection turns out to be dead.
    fileprivate var isRepeatable: Bool { self == .get || self == .head }
}
