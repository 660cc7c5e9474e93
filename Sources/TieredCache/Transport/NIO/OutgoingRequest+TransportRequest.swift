#if HTTPClient
import HTTPTransport
import NIOCore
import SystemPackage

extension OutgoingRequest {
    /// Encodes a request.
    ///
    /// - Throws: ``TransportError/Kind/invalidRequest``.
    init(_ request: TransportRequest) throws(TransportError) {
        do throws(ExchangeError) {
            let peer =
                if let socket = request.socket {
                    ConnectionPeer(socket: socket.path.string, keeping: socket)
                } else {
                    try ConnectionPeer(request.head)
                }
            try self.init(
                request.head,
                to: peer,
                content: Content(of: request),
                connectTimeout: request.connectTimeout
            )
        } catch {
            throw TransportError(error)
        }
    }
}

extension OutgoingRequest.Content {
    fileprivate init(of request: TransportRequest) {
        if let upload = request.upload {
            self = .streamed(length: upload.length) {
                try await upload.next()?.withUnsafeBytes { ByteBuffer(bytes: $0) }
            }
        } else if let body = request.body, !body.isEmpty {
            self = .bytes(ByteBuffer(bytes: body))
        } else {
            self = .none
        }
    }
}
#endif
