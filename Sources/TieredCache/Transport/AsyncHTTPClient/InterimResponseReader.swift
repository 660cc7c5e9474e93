#if HTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1

/// Hands on the interim responses (1xx) of a connection, which the library leaves out.
///
/// A request that wants them carries a number under which its handler is found; the number never
/// reaches the wire. One request at a time is on a connection, so what arrives is for the last one.
final class InterimResponseReader: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// Never on the wire: names the handler of a request.
    static let fieldName = "tieredcache-interim"

    private var handler: (@Sendable (HTTPResponse) -> Void)?

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        guard case .head(var head) = unwrapOutboundIn(data) else {
            context.write(data, promise: promise)
            return
        }
        handler = head.headers.first(name: Self.fieldName).flatMap { InterimHandlers.take($0) }
        head.headers.remove(name: Self.fieldName)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if let handler, case .head(let head) = unwrapInboundIn(data),
            (100..<200).contains(head.status.code), head.status != .switchingProtocols
        {
            handler(HTTPResponse(head))
        }
        context.fireChannelRead(data)
    }
}

/// The handlers of requests that are on their way to a connection.
enum InterimHandlers {
    private struct State {
        var nextNumber: UInt64 = 0
        var handlers: [String: @Sendable (HTTPResponse) -> Void] = [:]
    }

    private static let state = Guarded(State())

    /// Keeps a handler until its request is written.
    ///
    /// - Returns: what the request has to carry.
    static func keep(_ handler: @escaping @Sendable (HTTPResponse) -> Void) -> String {
        state.withLock { state in
            state.nextNumber &+= 1
            let number = String(state.nextNumber)
            state.handlers[number] = handler
            return number
        }
    }

    /// Gives a handler up: to the request that is written, or because it never was.
    static func take(_ number: String) -> (@Sendable (HTTPResponse) -> Void)? {
        state.withLock { $0.handlers.removeValue(forKey: number) }
    }
}
#endif
