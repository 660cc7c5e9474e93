#if HTTPClient
import AsyncHTTPClient
import HTTPCaching
import HTTPTypes
import NIOCore
import NIOHTTP1

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
        var outgoing = try templates.request(for: head)
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
    }

    /// The number of requests kept; one more lets all go.
    private static let capacity = 64

    private let state = Guarded<[Key: HTTPClient.Request]>([:])

    /// The request for the origin and the method of a head.
    ///
    /// - Throws: ``TransportError/Kind/invalidRequest``.
    func request(for head: HTTPRequest) throws(TransportError) -> HTTPClient.Request {
        let key = Key(scheme: head.scheme, authority: head.authority, method: head.method.rawValue)
        if let known = state.withLock({ $0[key] }) { return known }
        let made: HTTPClient.Request
        let origin = try Self.origin(of: head)
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
