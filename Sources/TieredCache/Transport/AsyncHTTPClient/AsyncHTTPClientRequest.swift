#if HTTPClient
import AsyncHTTPClient
import HTTPCaching
import HTTPTypes
import NIOCore
import NIOHTTP1
import SystemPackage

/// A request in the types of the library, checked for bytes that would break its framing.
///
/// The library parses a URL with Foundation, which re-encodes unusual characters (`[` becomes
/// `%5B`, a lone `%` becomes `%25`). A cache must request exactly the target that it stores under,
/// so the library gets the authority alone, and ``RequestTargetWriter`` inserts the target.
struct AsyncHTTPClientRequest {
    /// Never sent: carries the target past the library.
    static let targetFieldName = "tieredcache-request-target"

    let request: HTTPClient.Request
    /// The number under which the exchange waits for the request to be written.
    let number: String

    /// Translates a request.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - isLast: whether the connection is closed after it.
    ///   - exchange: receives its response.
    ///   - templates: the requests made of URLs before.
    /// - Throws: ``TransportError/Kind/invalidRequest``.
    init(
        _ request: TransportRequest,
        isLast: Bool = false,
        for exchange: AsyncHTTPClientExchange,
        templates: RequestTemplates
    ) throws(TransportError) {
        let head = request.head
        var outgoing = try templates.request(for: head, at: request.socket)
        guard let target = head.path, Self.isTarget(target) else {
            throw TransportError(
                .invalidRequest,
                "the request target does not start with '/' or has a character no target has"
            )
        }
        number = PendingExchanges.keep(exchange)
        var headers = [(Self.targetFieldName, target), (ResponseReader.fieldName, number)]
        headers += head.headerFields.lazy.map { ($0.name.rawName, $0.value) }
        outgoing.headers = HTTPHeaders(headers)
        // The library would name the socket.
        if request.socket != nil { outgoing.headers.replaceOrAdd(name: "Host", value: "localhost") }
        if isLast { outgoing.headers.replaceOrAdd(name: "Connection", value: "close") }
        outgoing.body =
            request.upload.map { .pulling($0) }
            ?? request.body.map { .byteBuffer(ByteBuffer(bytes: $0)) }
        self.request = outgoing
    }

    private static func isTarget(_ text: String) -> Bool {
        text.utf8.first == UInt8(ascii: "/")
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }
}

/// Requests without fields and body, by origin and method: the library parses a URL for each that
/// is made, which takes longer than all else about it.
final class RequestTemplates: Sendable {
    private struct Key: Hashable {
        let scheme: String?
        let authority: String?
        let method: String
        let socket: FilePath?
    }

    /// The number of requests kept; one more lets all go.
    private static let capacity = 64

    private let state = Guarded<[Key: HTTPClient.Request]>([:])

    /// The request for the origin and the method of a head, or for the server at a socket.
    ///
    /// - Throws: ``TransportError/Kind/invalidRequest``.
    func request(
        for head: HTTPRequest,
        at socket: OwnerSocket?
    ) throws(TransportError) -> HTTPClient.Request {
        let key = Key(
            scheme: socket == nil ? head.scheme : nil,
            authority: socket == nil ? head.authority : nil,
            method: head.method.rawValue,
            socket: socket?.path
        )
        if let known = state.withLock({ $0[key] }) { return known }
        let made: HTTPClient.Request
        let origin =
            if let socket { Self.origin(at: socket) } else {
                try Self.origin(of: head).description
            }
        do {
            made = try HTTPClient.Request(
                url: "\(origin)/",
                method: HTTPMethod(rawValue: key.method)
            )
        } catch {
            throw TransportError(.invalidRequest, "\(error)")
        }
        state.withLock { state in
            if state.count >= Self.capacity { state = [:] }
            state[key] = made
        }
        return made
    }

    /// Scheme and `host[:port]`, without userinfo: the Authorization field carries credentials.
    ///
    /// Checked here, because the library traps on a port above 65535.
    private static func origin(of head: HTTPRequest) throws(TransportError) -> TargetURI.Origin {
        guard let scheme = head.scheme, let authority = head.authority,
            !authority.utf8.contains(where: { "/?#@".utf8.contains($0) })
        else {
            throw TransportError(.invalidRequest, "the authority is not host[:port]")
        }
        do {
            return try TargetURI("\(scheme)://\(authority)/").origin
        } catch {
            throw TransportError(.invalidRequest, "\(error)")
        }
    }

    /// How the library calls a server at a socket.
    private static func origin(at socket: OwnerSocket) -> String {
        let path = socket.path.string.utf8.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return byte < 16 ? "%0\(digits)" : "%\(digits)"
        }
        return "http+unix://\(path.joined())"
    }
}

/// Puts the exact request target into the request line, in place of the library's rendering.
final class RequestTargetWriter: ChannelOutboundHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        guard case .head(var head) = unwrapOutboundIn(data),
            let target = head.headers.first(name: AsyncHTTPClientRequest.targetFieldName)
        else {
            context.write(data, promise: promise)
            return
        }
        head.uri = target
        head.headers.remove(name: AsyncHTTPClientRequest.targetFieldName)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}
#endif
